#!/usr/bin/env python3
"""A picture of a live page once it has some seconds of history: shot.py URL PICTURE [SECONDS]"""

import sys
import time

from browser import Browser

browser = Browser()
try:
    browser.look(1280, 1500, "light")
    browser.open(sys.argv[1])
    time.sleep(float(sys.argv[3]) if len(sys.argv) > 3 else 6)
    browser.screenshot(sys.argv[2])
finally:
    browser.close()
