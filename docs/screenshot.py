"""Makes the picture of the page for the README: the sample data of `kept serve --demo`, in a real Chromium.

    python docs/screenshot.py      writes docs/images/saw.png

Needs Chromium and playwright.
"""

import os
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from pathlib import Path

from playwright.sync_api import sync_playwright

IMAGES = Path(__file__).parent / "images"
PORT, KEY = 7377, "screenshot"
SERVE = """
import sys
from pathlib import Path
from kept.entrypoints.http.server import ServeOptions, run
from kept.entrypoints.web.demo import fill
home = Path(sys.argv[1])
options = ServeOptions(home=str(home / "kept"), project=str(fill(home)), port=int(sys.argv[2]), key=sys.argv[3])
run(options, say=print, open_browser=None)
"""


def main() -> None:
    chromium = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))))
    IMAGES.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as home:
        server = subprocess.Popen([sys.executable, "-c", SERVE, home, str(PORT), KEY])
        try:
            _wait()
            with sync_playwright() as started:
                sandbox = ["--no-sandbox"] if os.geteuid() == 0 else []
                browser = started.chromium.launch(executable_path=chromium, args=sandbox)
                page = browser.new_context(viewport={"width": 1440, "height": 1000}, color_scheme="light").new_page()
                page.goto(f"http://127.0.0.1:{PORT}/sign-in")
                page.get_by_label("Key or token").fill(KEY)
                page.get_by_role("button", name="Sign in").click()
                page.locator("div.trace").wait_for()
                page.get_by_role("button", name="Got it").click()
                page.screenshot(path=str(IMAGES / "saw.png"))
                browser.close()
        finally:
            server.terminate()
            server.wait(10)


def _wait() -> None:
    for _ in range(300):
        try:
            urllib.request.urlopen(f"http://127.0.0.1:{PORT}/")
        except urllib.error.HTTPError:
            return  # it answers, and wants a key
        except OSError:
            time.sleep(0.1)
    raise SystemExit("The server did not start.")


if __name__ == "__main__":
    main()
