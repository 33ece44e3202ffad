"""Finds models: folders in ``engine/models``, and any folder the user names.

A folder is a model when it has one of
- ``model.py`` with ``load(folder: Path) -> SpeechModel``: a model of its own kind;
- ``model.json`` with ``{"family": NAME}``: other weights and voices for the model NAME.
"""

import importlib
import importlib.util
import json
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import cast

from engine.errors import ModelUnusable
from engine.models.base import Found, SpeechModel

_HOME = Path(__file__).parent
DEFAULT = "ember"


def known() -> tuple[str, ...]:
    """Names of the models that come with voxwire."""
    return tuple(sorted(path.parent.name for path in _HOME.glob("*/model.py")))


def find(name_or_path: str = DEFAULT) -> Found:
    """The model of that name, or in that folder. Raises `ModelUnusable`."""
    if name_or_path in known():
        module = importlib.import_module(f"engine.models.{name_or_path}.model")
        return Found(name_or_path, _HOME / name_or_path, _loader(module, name_or_path))
    folder = Path(name_or_path).expanduser().resolve()
    if not folder.is_dir():
        raise ModelUnusable(f"no model {name_or_path!r}: neither a folder nor one of {', '.join(known())}")
    if (folder / "model.py").is_file():
        return Found(folder.name, folder, _loader(_import(folder), folder.name))
    if (folder / "model.json").is_file():
        family = find(_family(folder / "model.json"))
        return Found(folder.name, folder, family.load)
    raise ModelUnusable(f"{folder} is not a model: it has neither model.py nor model.json")


def load(name_or_path: str = DEFAULT) -> SpeechModel:
    """Find a model and read all but its weights. Raises `ModelUnusable`."""
    found = find(name_or_path)
    return found.load(found.folder)


def _family(path: Path) -> str:
    try:
        family = json.loads(path.read_text())["family"]
    except (ValueError, KeyError, TypeError) as error:
        raise ModelUnusable(f'{path} must be a JSON object with "family"') from error
    if family not in known():
        raise ModelUnusable(f"{path}: unknown family {family!r}; known: {', '.join(known())}")
    return str(family)


def _import(folder: Path) -> ModuleType:
    name = f"voxwire_model_{folder.name.replace('-', '_').replace('.', '_')}"
    spec = importlib.util.spec_from_file_location(name, folder / "model.py")
    if spec is None or spec.loader is None:
        raise ModelUnusable(f"{folder / 'model.py'} cannot be imported")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses in it look their module up
    try:
        spec.loader.exec_module(module)
    except (ImportError, SyntaxError) as error:
        raise ModelUnusable(f"{folder / 'model.py'}: {error}") from error
    return module


def _loader(module: ModuleType, name: str) -> Callable[[Path], SpeechModel]:
    loader = vars(module).get("load")
    if not callable(loader):
        raise ModelUnusable(f"model {name}: model.py has no function load(folder)")
    return cast(Callable[[Path], SpeechModel], loader)
