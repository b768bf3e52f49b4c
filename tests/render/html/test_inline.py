"""Modules become one script."""

import pytest

from traceviz.render.html import inline

FILES = {
    "main.js": 'import { startReport } from "./report.js";\nimport {\n  one,\n} from "./dom.js";\n\nstart(1);\n',
    "report.js": 'import { one } from "./dom.js";\n\nexport function startReport(root) {\n  return one(root);\n}\n',
    "dom.js": "// Elements.\nexport const one = 1; // 1\n  // two\nexport async function two() {}\n",
    "a.css": "/* Colours *\\ and ** more */\n.a { color: red; } /* one */\n.b { margin: 0; }\n",
    "a.js": 'import { b } from "./b.js";\n',
    "b.js": 'import { a } from "./a.js";\n',
}


@pytest.fixture(autouse=True)
def _files(monkeypatch):
    monkeypatch.setattr(inline, "asset", FILES.__getitem__)


def test_three_modules_become_one_in_the_order_of_their_imports_each_once():
    assert inline.script("main.js", "report.js") == (
        "const one = 1; // 1\nasync function two() {}\nfunction startReport(root) {\nreturn one(root);\n}\nstart(1);\n"
    )


def test_style_sheets_are_joined_without_comments():
    assert inline.style(["a.css", "a.css"]) == "\n".join([".a { color: red; } .b { margin: 0; }\n"] * 2)


def test_a_circle_of_2_modules_is_refused():
    with pytest.raises(ValueError, match=r"a\.js → b\.js → a\.js"):
        inline.script("a.js")


def test_a_hash_is_that_of_the_policy():
    assert inline.content_hash("x") == "sha256-LXEWQrcmsEQBYnyp+6wy9chTD7GQPMTbAiWHF5IaSIE="
