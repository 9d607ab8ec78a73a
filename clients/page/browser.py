"""A headless Chromium, by the WebDriver protocol of Debian's chromium-driver. Nothing but Python's own library."""

import base64
import json
import socket
import subprocess
import time
import urllib.error
import urllib.request


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


class Browser:
    def __init__(self, width=1280, height=900):
        port = free_port()
        self.base = f"http://127.0.0.1:{port}"
        self.driver = subprocess.Popen(["chromedriver", f"--port={port}", "--log-level=SEVERE"], stdout=subprocess.DEVNULL)
        arguments = ["--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", f"--window-size={width},{height}"]
        wanted = {"goog:loggingPrefs": {"browser": "ALL"}, "goog:chromeOptions": {"args": arguments}}
        until = time.monotonic() + 30
        while True:
            try:
                self.session = "/session/" + self.call("POST", "/session", {"capabilities": {"alwaysMatch": wanted}})["sessionId"]
                return
            except (ConnectionError, urllib.error.URLError):
                if time.monotonic() > until:
                    raise
                time.sleep(0.1)

    def call(self, method, path, body=None):
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.base + path, data, {"content-type": "application/json"}, method=method)
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:
                return json.load(answer)["value"]
        except urllib.error.HTTPError as error:
            raise RuntimeError(json.load(error)["value"]["message"].splitlines()[0]) from error

    def of(self, method, path, body=None):
        return self.call(method, self.session + path, body)

    def devtools(self, command, **parameters):
        return self.of("POST", "/goog/cdp/execute", {"cmd": command, "params": parameters})

    def open(self, url):
        self.of("POST", "/url", {"url": url})

    def run(self, script, *arguments):
        return self.of("POST", "/execute/sync", {"script": script, "args": list(arguments)})

    def keys(self, text):
        """Presses keys, one after the other, where the focus is."""
        presses = [{"type": kind, "value": key} for key in text for kind in ("keyDown", "keyUp")]
        self.of("POST", "/actions", {"actions": [{"type": "key", "id": "keyboard", "actions": presses}]})

    def look(self, width, height, scheme):
        self.devtools("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        self.devtools("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])

    def screenshot(self, path):
        how = {"format": "webp", "quality": 80} if path.endswith(".webp") else {"format": "png"}
        shot = self.devtools("Page.captureScreenshot", captureBeyondViewport=False, **how)
        with open(path, "wb") as file:
            file.write(base64.b64decode(shot["data"]))

    def complaints(self):
        return [entry["message"] for entry in self.of("POST", "/se/log", {"type": "browser"}) if entry["level"] == "SEVERE"]

    def close(self):
        try:
            self.of("DELETE", "")
        finally:
            self.driver.kill()
            self.driver.wait()
