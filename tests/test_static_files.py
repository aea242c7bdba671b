"""What is sent of the page's files: everything but indentation, comments and blanks that mean nothing."""

import re

import pytest

from altmas.web.static_files import STATIC, sent, slim_page, slim_script, slim_style

SCRIPTS = sorted(path.name for path in STATIC.glob("*.js"))
STYLES = sorted(path.name for path in STATIC.glob("*.css"))


def test_scripts_lose_indentation_and_comments_and_nothing_else() -> None:
    script = """// About it.

    /** What it does. */
    const a = { b: 1 }; // trailing
      call("http://x; // no comment", `; // nor this`); // kept: this `sign` might end a text
    const found = /[/]/.test(a); //also kept
    if (a !== b && c) { return -x; } else if (a - -b) { f([ 1, 2 ], (d) => d ? .5 : e); }
    """
    assert slim_script(script).splitlines() == [
        "const a={b: 1};",
        'call("http://x; // no comment", `; // nor this`); // kept: this `sign` might end a text',
        "const found = /[/]/.test(a); //also kept",
        "if (a!==b&&c){return -x;} else if (a - -b){f([1,2],(d)=>d?.5:e);}",
    ]


@pytest.mark.parametrize("name", SCRIPTS)
def test_a_script_has_nothing_that_goes_over_lines_but_code(name: str) -> None:
    """Neither texts nor comments, which taking the indentation away could change."""
    for line in (STATIC / name).read_text(encoding="utf-8").splitlines():
        code = re.sub(r"//.*", "", line)
        assert code.count("`") % 2 == 0, line
        assert code.count("/*") == code.count("*/"), line
        assert not line.endswith("\\"), line


@pytest.mark.parametrize("name", SCRIPTS)
def test_the_code_of_a_script_is_sent_line_by_line(name: str) -> None:
    lines = [line.strip() for line in (STATIC / name).read_text(encoding="utf-8").splitlines()]
    code = [line for line in lines if line and not line.startswith(("//", "/**"))]
    slim = sent(name).splitlines()
    assert len(slim) == len(code)
    for line, full in zip(slim, code, strict=True):
        if re.search("[\"'`/]", line):
            assert line == full or re.fullmatch(r" // [^`\"']*", full.removeprefix(line))
        else:
            assert line.replace(" ", "") == re.sub(r" // [^`\"']*$", "", full).replace(" ", "")


def test_styles_keep_every_blank_that_means_something() -> None:
    style = """/* About
    it. */
    .a :hover , .b > .c:not(.d, .e) { margin: 0 auto; font: 1px/2 "A B", serif; }
    @media (min-width: 1px) and (pointer: coarse) { .a::after { content: " (x)"; width: calc(1px + 2%); } }
    """
    assert slim_style(style) == (
        '.a :hover ,.b > .c:not(.d,.e){margin:0 auto;font:1px/2 "A B",serif}'
        '@media (min-width:1px) and (pointer:coarse){.a::after{content:" (x)";width:calc(1px + 2%)}}\n'
    )


@pytest.mark.parametrize("name", STYLES)
def test_no_text_of_a_style_has_a_sign_after_which_blanks_are_dropped(name: str) -> None:
    for text in re.findall(r'"[^"\n]*"', (STATIC / name).read_text(encoding="utf-8")):
        assert not re.search(r"[{};:,]|  ", text), text


def test_pages_lose_indentation() -> None:
    assert slim_page("<main>\n  <p>a  b</p>\n\n  </main>") == "<main>\n<p>a  b</p>\n</main>"
