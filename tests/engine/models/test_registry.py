import json

import pytest

from engine.errors import ModelUnusable
from engine.models import registry


def test_the_embedded_model_is_known():
    assert registry.DEFAULT in registry.known()
    assert registry.find("ember").folder.name == "ember"


def test_a_users_folder_brings_its_own_code(tmp_path):
    folder = tmp_path / "my-model.v2"
    folder.mkdir()
    (folder / "model.py").write_text("def load(folder):\n    return folder.name\n")
    assert registry.load(str(folder)) == "my-model.v2"


def test_other_weights_of_a_known_family(tmp_path):
    (tmp_path / "model.json").write_text(json.dumps({"family": "ember"}))
    found = registry.find(str(tmp_path))
    with pytest.raises(ModelUnusable, match=r"lm/config\.json is missing"):
        found.load(tmp_path)


@pytest.mark.parametrize(
    ("name", "content", "told"),
    [
        ("model.py", "x = 1\n", "no function load"),
        ("model.py", "import nonexistent_thing\n", "nonexistent_thing"),
        ("model.py", "def load(:\n", "model.py"),
        ("model.json", "{", "JSON object"),
        ("model.json", '{"family": "nobody"}', "known: ember"),
        ("README", "", "neither model.py nor model.json"),
    ],
)
def test_what_is_wrong_is_told(tmp_path, name, content, told):
    (tmp_path / name).write_text(content)
    with pytest.raises(ModelUnusable, match=told):
        registry.load(str(tmp_path))


def test_no_such_model():
    with pytest.raises(ModelUnusable, match="one of ember"):
        registry.find("/nonexistent/model")
