"""A headless Chromium with what it complained of, what it asked the network for, and how wide a page is."""

import json
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
DRIVER = shutil.which("chromedriver")


class Browser:
    """One window; `find` and `finds` take CSS selectors."""

    def __init__(self, driver: Any):
        self.driver = driver

    def open(self, page: Path, width: int = 1280, height: int = 900, where: str = "") -> None:
        """Opens a file in a window of that many CSS pixels."""
        metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
        self.driver.get("about:blank")
        self.driver.get(page.resolve().as_uri() + where)

    def find(self, selector: str) -> Any:
        return self.driver.find_element("css selector", selector)

    def finds(self, selector: str) -> list[Any]:
        return self.driver.find_elements("css selector", selector)

    def run(self, script: str, *values: Any) -> Any:
        """The value of a JavaScript function body in the page."""
        return self.driver.execute_script(script, *values)

    def until(self, condition: Callable[[], object]) -> None:
        """Waits until the page says so: what follows a link, the history or a key is drawn later than its cause."""
        from selenium.webdriver.support.wait import WebDriverWait

        WebDriverWait(self.driver, 30, poll_frequency=0.05).until(lambda _: condition())

    def press(self, *keys: str) -> None:
        """Keys for the element that has the focus."""
        from selenium.webdriver.common.action_chains import ActionChains

        ActionChains(self.driver).send_keys(*keys).perform()

    def complaints(self) -> list[str]:
        """What is new in the console: errors, warnings, violations of the policy."""
        return [f"{entry['level']}: {entry['message']}" for entry in self.driver.get_log("browser")]

    def requests(self) -> list[str]:
        """Addresses that were asked for since the last call, but for those that are data."""
        events = [json.loads(entry["message"])["message"] for entry in self.driver.get_log("performance")]
        found = [one["params"]["request"]["url"] for one in events if one["method"] == "Network.requestWillBeSent"]
        return [url for url in found if not url.startswith("data:")]

    def overflow(self) -> int:
        """Pixels by which the page is wider than its window."""
        return int(self.run("return document.documentElement.scrollWidth - document.documentElement.clientWidth"))


@contextmanager
def browser() -> Iterator[Browser]:
    """A running browser; the test is skipped where there is none."""
    webdriver = pytest.importorskip("selenium.webdriver", reason="selenium is not installed")
    if CHROMIUM is None or DRIVER is None:
        pytest.skip("chromium and chromedriver are not installed")
    from selenium.webdriver.chrome.service import Service

    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM
    for word in ("--headless=new", "--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu"):
        options.add_argument(word)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    driver = webdriver.Chrome(options=options, service=Service(DRIVER))
    try:
        yield Browser(driver)
    finally:
        driver.quit()
