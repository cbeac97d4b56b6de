"""Notes and tags in a browser: written in a dialog, shown in the list, and chosen there."""

from __future__ import annotations

from sparring.training.records.labels import Labels, read_labels
from web.made_runs import make_run


def test_a_note_and_tags_are_written_and_listed_by(page, serve, tmp_path):
    one, _ = make_run(tmp_path, "one"), make_run(tmp_path, "two")
    address = serve(tmp_path)
    page.goto(f"{serve.pages[address]}#/runs/one")
    page.click("text=Add a note or tags")
    page.fill("dialog textarea", "<b>wide</b> net")
    page.fill("dialog input", "good, wide")
    page.click("dialog >> text=Save")
    page.wait_for_selector(".labels .note >> text='<b>wide</b> net'")
    assert read_labels(one) == Labels("<b>wide</b> net", ("good", "wide"))
    page.click(".labels a.tag >> text=good")
    page.wait_for_selector('tr[data-run="one"]')
    assert page.locator("table.runs tbody tr").count() == 1
    page.get_by_label("Tag", exact=True).select_option("")
    page.wait_for_selector('tr[data-run="two"]')


def test_a_tag_that_cannot_be_is_told_in_the_dialog(page, serve, tmp_path):
    run = make_run(tmp_path, "one")
    address = serve(tmp_path)
    page.goto(f"{serve.pages[address]}#/runs/one")
    page.click("text=Add a note or tags")
    page.fill("dialog input", "bad/tag")
    page.click("dialog >> text=Save")
    page.wait_for_selector("dialog .wrong >> text=not a tag")
    assert read_labels(run) == Labels()
    page.complaints.clear()  # a browser notes every answer of 400
