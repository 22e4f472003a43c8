"""Where the shared folders are looked for."""

from pathlib import Path

import pytest
from support.errors import error_line

from n2d2py import resources
from n2d2py.errors import N2D2Error

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(autouse=True)
def no_variable(monkeypatch):
    monkeypatch.delenv("N2D2PY_DATA", raising=False)


@pytest.mark.parametrize("name", ["kernels", "export_templates", "params", "models"])
def test_the_checkout_is_found(name):
    assert resources.folder(name) == ROOT / name


def test_the_variable_comes_first(monkeypatch, tmp_path):
    (tmp_path / "kernels").mkdir()
    monkeypatch.setenv("N2D2PY_DATA", str(tmp_path))
    assert resources.folder("kernels") == tmp_path / "kernels"


def test_a_wrong_variable_is_an_error(monkeypatch, tmp_path):
    monkeypatch.setenv("N2D2PY_DATA", str(tmp_path))
    with pytest.raises(N2D2Error, match="N2D2PY_DATA") as caught:
        resources.folder("kernels")
    assert caught.value.code == "E001"


def test_another_project_s_kernels_beside_the_package_are_not_taken(monkeypatch, tmp_path):
    site, prefix = tmp_path / "site-packages", tmp_path / "prefix"
    (site / "kernels").mkdir(parents=True)
    (prefix / "share" / "n2d2py" / "kernels").mkdir(parents=True)
    monkeypatch.setattr(resources, "__file__", str(site / "n2d2py" / "resources.py"))
    monkeypatch.setattr(resources.sys, "prefix", str(prefix))
    monkeypatch.setattr(resources.sysconfig, "get_path", lambda name, *scheme: str(prefix))
    assert resources.folder("kernels") == prefix / "share" / "n2d2py" / "kernels"


def test_an_install_into_a_target_folder_is_found(monkeypatch, tmp_path):
    target, prefix = tmp_path / "target", tmp_path / "prefix"
    (target / "share" / "n2d2py" / "models").mkdir(parents=True)
    monkeypatch.setattr(resources, "__file__", str(target / "n2d2py" / "resources.py"))
    monkeypatch.setattr(resources.sys, "prefix", str(prefix))
    monkeypatch.setattr(resources.sysconfig, "get_path", lambda name, *scheme: str(prefix))
    assert resources.folder("models") == target / "share" / "n2d2py" / "models"


def test_a_missing_folder_is_named(monkeypatch, tmp_path):
    monkeypatch.setattr(resources, "__file__", str(tmp_path / "n2d2py" / "resources.py"))
    monkeypatch.setattr(resources.sys, "prefix", str(tmp_path))
    monkeypatch.setattr(resources.sysconfig, "get_path", lambda name, *scheme: str(tmp_path))
    assert "'kernels'" in error_line(resources.folder, "kernels")
