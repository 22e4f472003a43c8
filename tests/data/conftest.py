"""What the tests of the data share: INI texts as documents, pictures, folders of real data."""

import numpy as np
import pytest
from PIL import Image

from n2d2py import log
from n2d2py.ini import load_document


@pytest.fixture(autouse=True)
def _fresh_log():
    log.setup()


@pytest.fixture
def ini(tmp_path):
    """A function from an INI text to its document, in tmp_path/net.ini."""

    def make(text):
        path = tmp_path / "net.ini"
        path.write_text(text)
        return load_document(path)

    return make


@pytest.fixture
def picture(tmp_path):
    """A function that writes a PNG of RGB (H, W, 3) or gray (H, W) bytes below tmp_path."""

    def write(name, pixels):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(np.asarray(pixels, np.uint8)).save(path)
        return path

    return write


@pytest.fixture(scope="session")
def shared(request):
    """The folder of real data beside the repository; skips without it."""
    folder = request.config.rootpath.parent / "shared" / "data"
    if not folder.is_dir():
        pytest.skip(f"no real data in {folder}")
    return folder
