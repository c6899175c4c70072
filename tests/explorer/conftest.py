"""A browser of the system, and pages for it; without a browser, one line says what to install."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fedhh.clients.clients import Clients
from fedhh.experiments.config.load import load_config
from fedhh.experiments.report.explorer.document import write_report
from fedhh.experiments.run import directory as output
from fedhh.experiments.run.run import run_config
from fedhh.simulation.log import LOG
from fedhh.words.lexicon import Lexicon

INSTALL = "needs a browser: apt-get install chromium chromium-driver, and pip install selenium"

HOSTILE = [
    "<script>window.hacked=1</script>",
    "</script><img src=x onerror=window.hacked=1>",
    "\"'`&amp;--><!--",
    "a\u202eb\u200fc\u2066d",
    "\x01\x07\x1b[2J\x9b",
    "=cmd()",
    "plain",
    "play",
]
LONG = "z" * 10_000
SYMBOLS = "".join(sorted(set("".join(HOSTILE)) | {"z"}))


class Page:
    """The browser's one window, what it says of errors, and whom it asks for what."""

    def __init__(self, driver: Any) -> None:
        self.driver = driver

    def open(self, address: str | Path, *, ready: str = "h2") -> Page:
        self.driver.get("about:blank")
        self.logs()
        self.driver.get(address.as_uri() if isinstance(address, Path) else address)
        self.wait(lambda: self.script(f"return document.querySelector({ready!r}) !== null"))
        return self

    def wait(self, true: Callable[[], Any], seconds: float = 60.0) -> Any:
        end = time.monotonic() + seconds
        while not (value := true()):
            assert time.monotonic() < end, "the page did not come so far"
            time.sleep(0.02)
        return value

    def script(self, code: str, *arguments: Any) -> Any:
        return self.driver.execute_script(code, *arguments)

    def text(self, selector: str = "main") -> str:
        return str(self.script("return document.querySelector(arguments[0]).textContent", selector))

    def has(self, text: str, selector: str = "main") -> bool:
        return bool(self.wait(lambda: text in self.text(selector)))

    def click(self, selector: str) -> None:
        self.script("document.querySelector(arguments[0]).click()", selector)

    def choose(self, label: str, value: str) -> None:
        """Choose a value of the choice that a text stands before."""
        done = self.script(
            "const each = [...document.querySelectorAll('label.choice')]"
            ".find((it) => it.textContent.startsWith(arguments[0]));"
            "const select = each.querySelector('select'); select.value = arguments[1];"
            "select.dispatchEvent(new Event('change')); return select.value",
            label, value,
        )  # fmt: skip
        assert done == value

    def search(self, word: str) -> str:
        """Look for a word, and return what the page says of it."""
        self.script(
            "const form = document.querySelector('.search form');"
            "document.querySelector('.answer').replaceChildren();"
            "form.querySelector('input').value = arguments[0]; form.requestSubmit()",
            word,
        )
        return str(self.wait(lambda: self.text(".answer")))

    def slide(self, step: int) -> None:
        """Move the slider of layers."""
        self.script(
            "const slider = document.querySelector('.player input'); slider.value = arguments[0];"
            "slider.dispatchEvent(new Event('input'))",
            step,
        )

    def last_step(self) -> int:
        return int(self.script("return +document.querySelector('.player input').max"))

    def press(self, text: str) -> None:
        """Click the button of a text."""
        self.script(
            "[...document.querySelectorAll('button')]"
            ".find((it) => it.textContent === arguments[0]).click()",
            text,
        )

    def saved(self, button: str, kind: str) -> bytes:
        """Press a button that saves, and return the file of a type without keeping it."""
        self.script(
            "window.saved = []; const made = URL.createObjectURL.bind(URL);"
            "URL.createObjectURL = (blob) => { blob.arrayBuffer().then((bytes) =>"
            "window.saved.push([blob.type, [...new Uint8Array(bytes)]])); return made(blob); };"
            "HTMLAnchorElement.prototype.click = () => {}"
        )
        self.press(button)
        found = self.wait(
            lambda: [
                content for each, content in self.script("return window.saved") if kind in each
            ]
        )
        return bytes(found[0])

    def cards(self) -> dict[str, str]:
        """Return what the cards say, by their labels."""
        shown = self.script(
            "return Object.fromEntries([...document.querySelectorAll('.card')].map((it) => "
            "[it.querySelector('dt').textContent, it.querySelector('dd').firstChild.textContent]))"
        )
        return dict(shown)

    def quiet(self, *asked: str) -> None:
        """Nothing was said on the console, nobody asked, and nothing that a word said was run."""
        messages, addresses = self.logs()
        assert messages == []
        assert [url for url in addresses if url not in asked] == []
        assert self.script("return window.hacked") is None

    def size(self, width: int) -> None:
        metrics = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)

    def logs(self) -> tuple[list[str], list[str]]:
        """Return messages of the console, and addresses that were asked for, since last time."""
        messages = [
            f"{each['level']}: {each['message']}" for each in self.driver.get_log("browser")
        ]
        asked = []
        for entry in self.driver.get_log("performance"):
            message = json.loads(entry["message"])["message"]
            if message["method"] == "Network.requestWillBeSent":
                asked.append(message["params"]["request"]["url"])
        return messages, [url for url in asked if not url.startswith(("data:", "blob:", "about:"))]


SIBLING = (
    "tests/explorer/test_page_data.py::test_the_words_of_a_page_are_the_discoveries_of_its_run"
)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What a browser shows is slow; what its page holds is not."""
    for item in items:
        if item.path.parent == Path(__file__).parent and item.path.name != "test_page_data.py":
            item.add_marker(pytest.mark.slow(SIBLING))


@pytest.fixture(scope="session")
def page(tmp_path_factory) -> Iterator[Page]:
    selenium = pytest.importorskip("selenium.webdriver", reason=INSTALL)
    binary = shutil.which("chromium") or shutil.which("chromium-browser")
    driver = shutil.which("chromedriver")
    if binary is None or driver is None:
        pytest.skip(INSTALL)
    from selenium.webdriver.chrome.options import Options
    from selenium.webdriver.chrome.service import Service

    options = Options()
    options.binary_location = binary
    profile = tmp_path_factory.mktemp("browser")
    for flag in ("headless=new", "no-sandbox", "disable-gpu", "disable-dev-shm-usage",
                 "window-size=1400,900", f"user-data-dir={profile}"):  # fmt: skip
        options.add_argument(f"--{flag}")
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    chrome = selenium.Chrome(options=options, service=Service(driver))
    chrome.set_script_timeout(60)
    try:
        yield Page(chrome)
    finally:
        chrome.quit()


def hostile_population(words: list[str]) -> Clients:
    return Clients.from_rows(
        name="hostile <i>\u202e",
        lexicon=Lexicon(words=words),
        clients=np.repeat(np.arange(4_000), len(words)),
        word_ids=np.tile(np.arange(len(words)), 4_000),
        counts=np.ones(4_000 * len(words), dtype=np.int64),
        num_clients=4_000,
    )


def run_in(directory: Path, population: Clients, *settings: str) -> Path:
    """A run that records its candidates, in a directory: of Adaptive TrieHH, if nothing is said."""
    base = [
        "baseline=none", "execution.workers=0", "protocol.name=adaptive-triehh",
        "privacy.local_epsilon=8",
    ]  # fmt: skip
    config = load_config(settings=[*base, *settings])
    unfinished = directory / "unfinished"
    settled, result = run_config(config, population, log_in=lambda _: unfinished)
    shutil.rmtree(unfinished / LOG)
    output.new_directory(settled, directory / "run", name="")
    output.write_result(directory / "run", result, settled, {"known": settled.population.known})
    return directory / "run"


def hostile_run(directory: Path, *settings: str) -> Path:
    """A run whose clients hold hostile words, in a directory."""
    return run_in(
        directory, hostile_population([*HOSTILE, LONG]),
        f"population.alphabet={SYMBOLS}", "population.known=none", "protocol.max_items=9",
        "protocol.depth=9", "protocol.clients_per_layer=auto", "privacy.local_epsilon=10",
        "protocol.participation=one-round", *settings,
    )  # fmt: skip


@pytest.fixture(scope="session")
def adaptive(tmp_path_factory) -> Path:
    return hostile_run(tmp_path_factory.mktemp("adaptive"), "protocol.eta_max=60")


@pytest.fixture(scope="session")
def ldp(tmp_path_factory) -> Path:
    settings = (
        "protocol.name=ldp-triehh", "protocol.eta_max=40", "protocol.passes=2",
        "protocol.false_discovery_rate=0",
    )  # fmt: skip
    return hostile_run(tmp_path_factory.mktemp("ldp"), *settings)


@pytest.fixture(scope="session")
def run_page(adaptive) -> Path:
    return write_report(adaptive)
