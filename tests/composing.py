"""Configs as the command line composes them, without running anything."""

from hydra import compose, initialize_config_dir
from hydra.core.global_hydra import GlobalHydra
from hydra.core.hydra_config import HydraConfig
from omegaconf import OmegaConf

from hindsearch.making import conf_dir


def composed(*overrides: str, name: str = "train"):
    GlobalHydra.instance().clear()
    with initialize_config_dir(str(conf_dir()), version_base="1.3"):
        cfg = compose(name, list(overrides), return_hydra_config=True)
        HydraConfig.instance().set_config(cfg)
    OmegaConf.set_struct(cfg, False)
    del cfg["hydra"]
    return cfg
