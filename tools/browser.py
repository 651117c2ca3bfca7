# SPDX-License-Identifier: GPL-2.0-or-later
"""
A headless Chromium for tests and figures of the report page: the DevTools protocol over the browser's own pipe, with nothing but
the standard library. No port is opened, and the profile is a folder that goes with the browser.
"""
import base64
import fcntl
import json
import os
import select
import shutil
import signal
import subprocess
import tempfile
import time

KEYS = {"Enter": ("Enter", 13, "\r"), "Escape": ("Escape", 27, None), "Tab": ("Tab", 9, None), "ArrowLeft": ("ArrowLeft", 37, None),
        "ArrowUp": ("ArrowUp", 38, None), "ArrowRight": ("ArrowRight", 39, None), "ArrowDown": ("ArrowDown", 40, None),
        "PageUp": ("PageUp", 33, None), "PageDown": ("PageDown", 34, None)}


class Browser:
    """One browser with one page at a time."""

    def __init__(self, width=1280, height=900, dark=False):
        self.profile = tempfile.mkdtemp(prefix="vapro-browser-")
        # the browser reads its file 3 and writes its file 4: high numbers first, so that none is overwritten
        inner = [fcntl.fcntl(fd, fcntl.F_DUPFD, 20) for fd in (*os.pipe(), *os.pipe())]
        read_in, self.to, self.come, write_in = inner

        def files():
            os.dup2(read_in, 3)
            os.dup2(write_in, 4)

        self.process = subprocess.Popen(
            ["chromium", "--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--no-first-run", "--remote-debugging-pipe",
             "--user-data-dir=" + self.profile, f"--window-size={width},{height}", "about:blank"],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, pass_fds=(3, 4), preexec_fn=files, start_new_session=True)
        os.close(read_in)
        os.close(write_in)
        self.width, self.height, self.dark = width, height, dark
        self.number, self.bytes, self.session, self.events = 0, b"", None, []
        self.target = None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        try:
            os.killpg(self.process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        self.process.wait()
        os.close(self.to)
        os.close(self.come)
        shutil.rmtree(self.profile, ignore_errors=True)

    def receive(self, deadline):
        """The next message."""
        while b"\0" not in self.bytes:
            if not select.select([self.come], [], [], max(0, deadline - time.monotonic()))[0]:
                raise TimeoutError("the browser does not answer")
            data = os.read(self.come, 1 << 20)
            if not data:
                raise RuntimeError("the browser ended")
            self.bytes += data
        text, _, self.bytes = self.bytes.partition(b"\0")
        return json.loads(text)

    def call(self, method, seconds=40, **parameters):
        """Calls a method of the protocol; events that come before its result are kept in self.events."""
        self.number += 1
        message = {"id": self.number, "method": method, "params": parameters}
        if self.session:
            message["sessionId"] = self.session
        data = json.dumps(message).encode() + b"\0"
        while data:
            data = data[os.write(self.to, data):]
        deadline = time.monotonic() + seconds
        while True:
            answer = self.receive(deadline)
            if answer.get("id") != self.number:
                self.events.append(answer)
            elif "error" in answer:
                raise RuntimeError(f"{method}: {answer['error'].get('message')}")
            else:
                return answer["result"]

    def open(self, path, fragment=""):
        """Opens a page file, and waits until it says that it is drawn."""
        self.session, self.events = None, []
        if self.target:
            self.call("Target.closeTarget", targetId=self.target)
        self.target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=self.target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(domain + ".enable")
        self.call("Emulation.setDeviceMetricsOverride", width=self.width, height=self.height, deviceScaleFactor=1, mobile=False)
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": "dark" if self.dark else "light"}])
        self.call("Page.addScriptToEvaluateOnNewDocument",
                  source="window.violations = []; addEventListener('securitypolicyviolation', event => violations.push(event.violatedDirective));")
        self.call("Page.navigate", url="file://" + os.path.abspath(path) + fragment)
        self.wait("document.documentElement && document.documentElement.dataset.ready === 'true'")

    def js(self, expression):
        """The value of an expression; promises are waited for."""
        result = self.call("Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True)
        if "exceptionDetails" in result:
            raise RuntimeError(f"{expression}: {result['exceptionDetails'].get('exception', {}).get('description')}")
        return result["result"].get("value")

    def wait(self, expression, seconds=40):
        deadline = time.monotonic() + seconds
        while True:
            try:
                if self.js(expression):
                    return
            except RuntimeError as error:  # a page that is just replaced
                if "context" not in str(error):
                    raise
            if time.monotonic() > deadline:
                raise TimeoutError(expression + "; " + "; ".join(self.complaints()))
            time.sleep(0.02)

    def key(self, *names, shift=False):
        """Presses keys; afterwards the page has drawn."""
        for name in names:
            key, code, text = KEYS.get(name, (name, ord(name.upper()[0]), name))
            values = {"key": key, "windowsVirtualKeyCode": code, "modifiers": 8 if shift else 0}
            if text:
                values["text"] = text
            self.call("Input.dispatchKeyEvent", type="keyDown", **values)
            self.call("Input.dispatchKeyEvent", type="keyUp", key=key, windowsVirtualKeyCode=code)
            self.js("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => done(true))))")

    def text(self, identifier):
        return self.js(f"document.getElementById({json.dumps(identifier)}).textContent")

    def screenshot(self, path, whole=True):
        size = self.call("Page.getLayoutMetrics")["cssContentSize"]
        clip = {"clip": {"x": 0, "y": 0, "width": size["width"], "height": size["height"], "scale": 1}, "captureBeyondViewport": True} if whole else {}
        with open(path, "wb") as file:
            file.write(base64.b64decode(self.call("Page.captureScreenshot", format="png", **clip)["data"]))

    def pdf(self):
        return base64.b64decode(self.call("Page.printToPDF", preferCSSPageSize=True, printBackground=True)["data"])

    def complaints(self):
        """What the page or the browser complained about, and requests other than for the page itself."""
        found = []
        for event in self.events:
            values = event.get("params", {})
            if event.get("method") == "Runtime.exceptionThrown":
                found.append(values["exceptionDetails"].get("exception", {}).get("description", "an exception"))
            elif event.get("method") == "Log.entryAdded" and values["entry"]["level"] in ("error", "warning"):
                found.append(values["entry"]["text"])
            elif event.get("method") == "Page.javascriptDialogOpening":
                found.append("a dialog: " + values["message"])
            elif event.get("method") == "Network.requestWillBeSent" and values.get("type") != "Document":
                found.append("a request: " + values["request"]["url"][:200])
        return found
