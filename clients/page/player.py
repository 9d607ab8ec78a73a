#!/usr/bin/env python3
"""Plays through the live page in a headless browser, and fails at the first thing that is not as it should be.

    player.py URL FAMILY [FOLDER]

URL is a page with --allow-changes, of a database under writes and reads with `statistics`; FAMILY is a family of a hostile
name. FOLDER gets screenshots.
"""

import os
import sys
import time

from browser import Browser

TAB, LEFT, ESCAPE, ENTER = "\ue004", "\ue012", "\ue00c", "\ue007"


def wait_for(what, browser, script, *arguments, seconds=20):
    until = time.monotonic() + seconds
    while True:
        found = browser.run(script, *arguments)
        if found:
            print(f"   {what}")
            return found
        if time.monotonic() > until:
            raise SystemExit(f"not there after {seconds} s: {what}")
        time.sleep(0.2)


def check(what, holds, seen=""):
    if not holds:
        raise SystemExit(f"does not hold: {what} {seen}")
    print(f"   {what}")


def see_the_figures(browser):
    wait_for("the page is live", browser, "return document.querySelector('#link.live') && document.title.includes('Spillway')")
    wait_for("the state is told in words", browser, "return document.querySelector('#verdict.good, #verdict.attention, #verdict.bad')?.textContent.length > 10")
    wait_for("writes are counted", browser, "return [...document.querySelectorAll('#tiles .figure')].length >= 8 && !/^(0|–)$/.test(document.querySelector('#tiles .figure').textContent)")
    wait_for("times of writes are drawn", browser, "return document.querySelector('#charts figure path')?.getAttribute('d').length > 40")
    wait_for("levels are drawn", browser, "return document.querySelectorAll('#levels .table-span, #levels .busy-span').length > 0", seconds=60)
    wait_for("events are told", browser, "return document.querySelectorAll('#events li').length > 0", seconds=60)
    wait_for("the cache, memory, logs and jobs have figures", browser, "return ['cache', 'memory', 'log', 'jobs', 'memtables', 'kept', 'ingests', 'answers'].every((id) => document.getElementById(id).textContent.length > 5)")
    before = browser.run("return document.querySelector('#tiles').textContent")
    wait_for("figures go on", browser, "return document.querySelector('#tiles').textContent !== arguments[0]", before)


def read_an_instant_by_keys(browser):
    browser.run("document.querySelector('#charts svg').focus()")
    browser.keys([LEFT, LEFT])
    seen = browser.run("return document.querySelector('#charts .legend').textContent")
    check("arrow keys read an instant", seen[2:3] == ":", seen)
    check("in all charts", browser.run("return document.querySelectorAll('#charts .cursor').length") >= 6)
    browser.keys([ESCAPE])
    check("Escape leaves it", browser.run("return document.querySelectorAll('#charts .cursor').length") == 0)


def reach_everything_by_keys(browser):
    browser.run("document.activeElement.blur(); window.scrollTo(0, 0)")
    reached = set()
    tops = []
    for _ in range(80):
        browser.keys([TAB])
        name, top, is_marked = browser.run("const at = document.activeElement; return [at.id || at.hash || at.tagName, at.closest('header') ? 0 : at.getBoundingClientRect().top + scrollY, at === document.body || getComputedStyle(at).outlineStyle !== 'none']")
        if not is_marked:
            check("the focus is seen", False, name)
        reached.add(name)
        tops.append(top)
    # The heading has no place of its own: it sticks to the top, and follows the end.
    check("from top to bottom", all(after >= before - 40 for before, after in zip(tops, tops[1:]) if after > 0), tops)
    check("each has a name", browser.run("return [...document.querySelectorAll('[tabindex], input, select, button, svg[role]')].every((one) => one.ariaLabel || one.getAttribute('aria-labelledby') || one.labels?.length > 0 || one.textContent.trim())"))
    wanted = {"#well", "#slow", "#full", "#turn", "#card-events", "#card-options", "svg", "family", "change-name", "change-value"}
    check("keys reach links, charts and fields", wanted <= reached, wanted - reached)


def follow_links(browser):
    check("each link of the heading has its place", browser.run("return [...document.querySelectorAll('nav a')].every((link) => document.querySelector(link.hash))"))
    # The database is well most of the time: its trouble is made here, of figures that the page knows.
    told = """
        const { drawVerdict, drawOptions } = await import('/page/panels.js');
        const options = [{ family: null, name: 'max_subcompactions', member_of: null, value: '1', text: '1', default: '1', is_mutable: true, is_changed: false, is_named: true, advised: null }];
        document.querySelectorAll('#options-online, #options-at-open').forEach((table) => table.replaceChildren());
        drawOptions(options, false, () => {});
        drawVerdict({ level: 'bad', sentences: [{ level: 'bad', text: 'Stopped.', remedy: 'More max_subcompactions.', family: null, place: 'chart-level0' }] }, options);
        const links = [...document.querySelectorAll('#verdict a')];
        const reached = links.map((link) => { link.click(); return document.querySelector(decodeURIComponent(link.hash))?.id; });
        return [reached.join(' '), document.getElementById('chart-level0').dataset.told, document.querySelector('#options-online tr.named')?.textContent.includes('named above')];
    """
    seen = browser.run("return (async () => {" + told + "})()")
    check("a trouble leads to its chart and its option, and marks both", seen == ["chart-level0 option-max_subcompactions-", "bad", True], seen)
    browser.run("document.activeElement.blur()")


def see_a_short_wait(browser):
    drawn = """
        const { Lanes } = await import('/page/lanes.js');
        const lanes = new Lanes();
        const point = (at, ms) => ({ unix_ms: 1e12 + at * 10000, seconds: 10, stops: 0.1, stall_ms: { 'memtable-limit': ms } });
        lanes.drawEvents([point(-2, 0.5), point(-1, 1.2), point(0, 0)], [], 1e12, '10.0 ms');
        return [lanes.svg.querySelectorAll('rect').length, lanes.svg.querySelector('rect title')?.textContent.includes('stopped'), lanes.note.textContent];
    """
    seen = browser.run("return (async () => {" + drawn + "})()")
    check("twelve milliseconds of ten seconds are seen as stopped, and an empty lane says why", seen[:2] == [1, True] and "10.0 ms" in seen[2], seen)


def change_an_option(browser):
    browser.run("document.getElementById('change-family').value = 'default'; document.getElementById('change-name').value = 'write_buffer_size'; document.getElementById('change-value').value = '9M'; document.getElementById('change-value').focus()")
    browser.keys([ENTER])
    wait_for("an option is changed", browser, "return document.getElementById('change-result').textContent === 'Changed.'")
    wait_for("and seen", browser, "return /write_buffer_size changed9 MiB/.test(document.getElementById('options-online').textContent)")
    browser.run("document.getElementById('change-value').value = 'large'; document.getElementById('change-value').focus()")
    browser.keys([ENTER])
    wait_for("nonsense is refused, in words", browser, "const said = document.getElementById('change-result'); return said.className === 'bad' && said.textContent.includes('write_buffer_size')")


def take_hostile_names_as_text(browser, family):
    wait_for("a family's name is text", browser, "return [...document.querySelectorAll('#families td')].some((cell) => cell.textContent === arguments[0])", family)
    check("and no element", browser.run("return document.querySelectorAll('main img, main script, main b b').length") == 0)


def look(browser, folder):
    for name, width, height, scheme in [("light", 1280, 1500, "light"), ("dark", 1280, 1500, "dark"), ("narrow", 400, 1500, "light")]:
        browser.look(width, height, scheme)
        browser.run("window.dispatchEvent(new Event('resize')); window.scrollTo(0, 0)")
        time.sleep(1.5)
        overflow = browser.run("return document.documentElement.scrollWidth - window.innerWidth")
        check(f"{name}: nothing is cut off at {width} pixels", overflow <= 0, overflow)
        if folder:
            browser.screenshot(os.path.join(folder, f"live-{name}.webp"))


def main():
    url, family = sys.argv[1], sys.argv[2]
    folder = sys.argv[3] if len(sys.argv) > 3 else None
    browser = Browser()
    try:
        browser.open(url)
        see_the_figures(browser)
        read_an_instant_by_keys(browser)
        reach_everything_by_keys(browser)
        take_hostile_names_as_text(browser, family)
        follow_links(browser)
        see_a_short_wait(browser)
        change_an_option(browser)
        # The refused change above is told by the browser, too.
        complaints = [text for text in browser.complaints() if "/options" not in text]
        check("the browser has no complaint", not complaints, complaints)
        look(browser, folder)
    finally:
        browser.close()


main()
