"""Logs of evaluation tools as tables; small files by hand that follow what the tools write."""

import io
import json
import struct
import zipfile
import zlib

import pyarrow as pa
import pytest

from altmas import Pool, Session, read_evaluation
from altmas.errors import FileError, PoolError


def written(path, content):
    """A .json file, or a .jsonl file of a list."""
    text = "".join(json.dumps(one) + "\n" for one in content) if path.suffix == ".jsonl" else json.dumps(content)
    path.write_text(text, encoding="utf-8")
    return path


def columns(path):
    return read_evaluation(path).to_pydict()


# ---------------------------------------------------------------- Inspect


def sample(k, **others):
    return {
        "id": f"s{k}",
        "epoch": 1,
        "input": f"question {k}",
        "target": "yes",
        "output": {"model": "m", "choices": [], "completion": f"answer {k}"},
        "scores": {"match": {"value": "CIPN"[k % 4]}, "grade": {"value": k % 4 + 2}, "near": {"value": k / 8 + 0.1}},
        "metadata": {"topic": "ab"[k % 2], "parts": [1, 2]},
    } | others


def inspect_log(samples):
    return {"version": 2, "status": "success", "eval": {"task": "t", "model": "m"}, "samples": samples}


def test_an_inspect_log_has_verdicts_grades_scores_and_metadata(tmp_path):
    found = columns(written(tmp_path / "log.json", inspect_log([sample(k) for k in range(4)])))
    assert found["id"] == ["s0", "s1", "s2", "s3"] and found["output"][2] == "answer 2"
    assert found["match"] == ["pass", "fail", "partial", "no answer"]
    assert found["grade"] == [2, 3, 4, 5] and found["near.score"] == pytest.approx([0.1, 0.225, 0.35, 0.475])
    assert found["topic"] == list("abab") and found["model"] == ["m"] * 4
    assert "near" not in found and "parts" not in found


def test_epochs_make_ids_different(tmp_path):
    log = inspect_log([sample(1), sample(1, epoch=2)])
    assert columns(written(tmp_path / "log.json", log))["id"] == ["s1#1", "s1#2"]


def test_messages_parts_and_attachments_are_read_as_text(tmp_path):
    messages = [
        {"role": "system", "content": "be brief"},
        {"role": "user", "content": [{"type": "text", "text": "attachment://ab12"}]},
    ]
    message = {"role": "assistant", "content": [{"type": "text", "text": "said"}]}
    output = {"choices": [{"message": message}]}
    one = sample(1, input=messages, output=output, attachments={"ab12": "a long question"}, target=["x", "y"])
    found = columns(written(tmp_path / "log.json", inspect_log([one])))
    assert found["input"] == ["system: be brief\n\nuser: a long question"]
    assert found["output"] == ["said"] and found["target"] == ["x\n\ny"]


def test_scores_with_several_values_are_several_judges(tmp_path):
    one = sample(1, scores={"rubric": {"value": {"clear": True, "kind": 3}}})
    found = columns(written(tmp_path / "log.json", inspect_log([one])))
    assert found["rubric.clear"] == ["pass"] and found["rubric.kind"] == [3]


def test_letters_that_are_grades_stay_letters(tmp_path):
    log = inspect_log([sample(k, scores={"letter": {"value": "ABC"[k]}}) for k in range(3)])
    assert columns(written(tmp_path / "log.json", log))["letter"] == ["A", "B", "C"]


def test_ones_alone_are_no_verdict(tmp_path):
    log = inspect_log([sample(k, scores={"g": {"value": 1}, "v": {"value": k}}) for k in range(2)])
    found = columns(written(tmp_path / "log.json", log))
    assert found["g"] == [1, 1] and found["v"] == ["fail", "pass"]


def test_names_that_are_taken_and_values_of_several_kinds_lose_nothing(tmp_path):
    others = [{"id": 7, "match": "m", "long": 10**30, "mixed": 1}, {"id": 8, "mixed": "x", "long": 1}]
    log = inspect_log([sample(k, metadata=others[k], scores={"output": {"value": k}}) for k in range(2)])
    found = columns(written(tmp_path / "log.json", log))
    assert found["id"] == ["s0", "s1"] and found["metadata.id"] == [7, 8] and found["match"] == ["m", None]
    assert found["output"] == ["answer 0", "answer 1"] and found["output 2"] == ["fail", "pass"]
    assert found["long"] == [str(10**30), "1"] and found["mixed"] == ["1", "x"]


def test_samples_without_scores_output_or_metadata_are_kept_with_gaps(tmp_path):
    bare = sample(0, scores=None, output=None, metadata=None)
    nothing = sample(1, scores={"match": {"value": float("nan")}, "odd": None})
    found = columns(written(tmp_path / "log.json", inspect_log([bare, nothing, sample(2)])))
    assert found["output"] == ["", "answer 1", "answer 2"] and found["topic"] == [None, "b", "a"]
    assert (
        found["match"] == [None, None, "partial"] and found["odd"] == [None] * 3 and found["grade"] == [None, None, 4]
    )


def zstandard_zip(path, members):
    """A zip file whose members are compressed by method 93, which Python's zipfile cannot write."""
    data, directory = io.BytesIO(), io.BytesIO()
    for name, content in members.items():
        packed, raw = pa.Codec("zstd").compress(content, asbytes=True), name.encode()
        fields = struct.pack("<HHHHHIIIH", 63, 0, 93, 0, 33, zlib.crc32(content), len(packed), len(content), len(raw))
        offset = data.tell()
        data.write(b"PK\x03\x04" + fields + struct.pack("<H", 4) + raw + b"\0\0\0\0" + packed)
        directory.write(b"PK\x01\x02" + struct.pack("<H", 63) + fields)
        directory.write(struct.pack("<HHHHII", 0, 0, 0, 0, 0, offset) + raw)
    end = struct.pack("<HHHHIIH", 0, 0, len(members), len(members), directory.tell(), data.tell(), 0)
    path.write_bytes(data.getvalue() + directory.getvalue() + b"PK\x05\x06" + end)
    return path


@pytest.mark.parametrize("method", ["deflated", "zstandard"])
def test_an_eval_file_is_the_same_log_in_a_zip_file(tmp_path, method):
    log = inspect_log([sample(k) for k in range(4)])
    header = {name: one for name, one in log.items() if name != "samples"}
    members = {f"samples/s{k}_epoch_1.json": json.dumps(sample(k)).encode() for k in range(4)}
    members |= {"summaries.json": b"[]", "header.json": json.dumps(header).encode()}
    if method == "zstandard":
        zstandard_zip(tmp_path / "log.eval", members)
    else:
        with zipfile.ZipFile(tmp_path / "log.eval", "w", zipfile.ZIP_DEFLATED) as archive:
            for name, content in members.items():
                archive.writestr(name, content)
    assert read_evaluation(tmp_path / "log.eval").equals(read_evaluation(written(tmp_path / "log.json", log)))


# ---------------------------------------------------------------- promptfoo


def promptfoo_row(k, **others):
    passed = k % 2 == 0
    parts = [
        {"pass": passed, "score": float(passed), "assertion": {"type": "contains", "metric": "mentions"}},
        {"pass": True, "score": 0.7, "assertion": {"type": "llm-rubric", "value": "kind"}},
        {"pass": passed, "score": 0.3, "assertion": {"type": "llm-rubric", "value": "short"}},
    ]
    return {
        "id": f"u{k}",
        "testIdx": k,
        "promptIdx": 0,
        "testCase": {"vars": {"question": f"q{k}"}, "metadata": {"team": "x"}},
        "prompt": {"raw": f"Short: q{k}", "label": "Short: {{question}}"},
        "provider": {"id": "fixed", "label": ""},
        "vars": {"question": f"q{k}"},
        "response": {"output": f"answer {k}"},
        "success": passed,
        "score": 0.5 + k / 10,
        "failureReason": 0 if passed else 1,
        "gradingResult": {"pass": passed, "score": 0.5, "componentResults": parts},
    } | others


def promptfoo_error(k):
    return promptfoo_row(k, success=False, score=0, failureReason=2, gradingResult=None, response={"error": "none"})


@pytest.mark.parametrize("form", ["file", "summary", "lines"])
def test_promptfoo_results_in_each_of_their_forms(tmp_path, form):
    rows = [promptfoo_row(0), promptfoo_row(1)]
    summary = {"version": 3, "timestamp": "2026-01-01T00:00:00Z", "prompts": [], "results": rows, "stats": {}}
    content = {"file": {"evalId": "e", "results": summary, "config": {}}, "summary": summary, "lines": rows}[form]
    found = columns(written(tmp_path / ("r.jsonl" if form == "lines" else "r.json"), content))
    assert found["id"] == ["u0", "u1"] and found["input"] == ["Short: q0", "Short: q1"]
    assert found["output"] == ["answer 0", "answer 1"]
    assert found["success"] == found["mentions"] == found["llm-rubric 2"] == ["pass", "fail"]
    assert found["llm-rubric"] == ["pass", "pass"] and found["llm-rubric.score"] == [0.7, 0.7]
    assert found["mentions.score"] == [1.0, 0.0] and found["success.score"] == [0.5, 0.6]
    assert found["provider"] == ["fixed"] * 2 and found["prompt"] == ["Short: {{question}}"] * 2
    assert found["question"] == ["q0", "q1"] and found["team"] == ["x", "x"]


def test_an_error_of_the_provider_or_of_the_grader_is_no_verdict(tmp_path):
    broken = {"pass": False, "score": 0, "assertion": {"type": "llm-rubric"}, "metadata": {"graderError": True}}
    rows = [promptfoo_row(0), promptfoo_error(1), promptfoo_row(2, gradingResult={"componentResults": [broken]})]
    found = columns(written(tmp_path / "r.json", {"results": {"results": rows}}))
    assert found["success"] == ["pass", None, "pass"] and found["success.score"][1] is None
    assert found["llm-rubric"] == ["pass", None, None] and found["output"][1] == ""
    with pytest.raises(PoolError, match="row 1: the value is missing"):
        Pool.from_table(tmp_path / "r.json", prediction=["success"], classes=["pass", "fail"])


# ---------------------------------------------------------------- DeepEval


def deepeval_case(k, **others):
    metrics = [
        {"name": "Answer Relevancy", "threshold": 0.5, "success": k % 2 == 0, "score": 0.25 * k},
        {"name": "Correctness [GEval]", "success": True, "score": 1.0},
    ]
    return {
        "name": f"test_case_{k}",
        "input": f"q{k}",
        "actualOutput": f"a{k}",
        "expectedOutput": "e",
        "success": k % 2 == 0,
        "metricsData": metrics,
        "metadata": {"topic": "x"},
    } | others


@pytest.mark.parametrize("wrapped", [False, True])
def test_a_deepeval_test_run(tmp_path, wrapped):
    run = {"testCases": [deepeval_case(k) for k in range(3)], "conversationalTestCases": [], "metricsScores": []}
    found = columns(written(tmp_path / "run.json", {"testRunData": run} if wrapped else run))
    assert found["id"] == ["test_case_0", "test_case_1", "test_case_2"] and found["output"] == ["a0", "a1", "a2"]
    assert found["Answer Relevancy"] == found["success"] == ["pass", "fail", "pass"]
    assert found["Answer Relevancy.score"] == [0.0, 0.25, 0.5] and found["Correctness [GEval].score"] == [1.0] * 3
    assert found["target"] == ["e"] * 3 and found["topic"] == ["x"] * 3


def test_deepeval_names_that_repeat_errors_and_conversations(tmp_path):
    failed = [{"name": "Answer Relevancy", "success": False, "score": 0.0, "error": "no key"}]
    turns = [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "hello"}]
    talk = {"name": "test_case_0", "success": True, "metricsData": [], "turns": turns, "expectedOutcome": "greets"}
    run = {"testCases": [deepeval_case(0, metricsData=failed)], "conversationalTestCases": [talk]}
    found = columns(written(tmp_path / "run.json", run))
    assert found["id"] == ["0", "1"] and found["Answer Relevancy"] == [None, None]
    assert (found["input"][1], found["output"][1], found["target"][1]) == ("hi", "hello", "greets")


# ---------------------------------------------------------------- lm-eval


def lm_eval_row(k, **others):
    return {
        "doc_id": k,
        "doc": {"question": f"q{k}", "choices": ["yes", "no"]},
        "target": "1",
        "arguments": {"gen_args_0": {"arg_0": f"Q: q{k}", "arg_1": {"until": ["\n"]}}},
        "resps": [[f" it is {k}"]],
        "filtered_resps": [f"{k}"],
        "filter": "strict-match",
        "metrics": ["exact_match"],
        "doc_hash": "d",
        "prompt_hash": "p",
        "target_hash": "t",
        "exact_match": float(k == 1),
    } | others


def test_generated_samples_of_lm_eval(tmp_path):
    found = columns(written(tmp_path / "samples.jsonl", [lm_eval_row(0), lm_eval_row(1)]))
    assert found["id"] == ["0", "1"] and found["input"] == ["Q: q0", "Q: q1"] and found["output"] == ["0", "1"]
    assert found["exact_match"] == ["fail", "pass"] and found["question"] == ["q0", "q1"]
    assert found["target"] == ["1", "1"] and "doc_hash" not in found


def test_the_likelier_choice_is_what_lm_eval_samples_say(tmp_path):
    arguments = {f"gen_args_{k}": {"arg_0": "Q: q", "arg_1": f" {word}"} for k, word in enumerate(("yes", "no"))}
    said = [["-1.5", "False"], ["-0.5", "True"]]
    row = lm_eval_row(0, arguments=arguments, filtered_resps=said, metrics=["acc"], acc=0.0)
    assert columns(written(tmp_path / "samples.jsonl", [row]))["output"] == ["no"]


def test_several_filters_and_files_of_earlier_versions(tmp_path):
    rows = [lm_eval_row(0), lm_eval_row(0, filter="flexible-extract", exact_match=1.0)]
    assert columns(written(tmp_path / "a.jsonl", rows))["id"] == ["0/strict-match", "0/flexible-extract"]
    old = {"doc_id": 0, "doc": {}, "target": "1", "arguments": [["Q", " a"]], "resps": [["x"]], "acc": 0.0}
    found = columns(written(tmp_path / "b.jsonl", [old]))
    assert found["acc"] == ["fail"] and found["input"] == ["Q"]


def test_columns_that_the_lines_have_themselves_are_read_as_before(tmp_path):
    path = written(tmp_path / "samples.jsonl", [lm_eval_row(k) for k in range(3)])
    pool = Pool.from_table(path, id="doc_id", prediction="filter", classes=["strict-match", "other"])
    assert list(pool.ids) == [0, 1, 2]


# ---------------------------------------------------------------- OpenAI evals


def test_a_record_of_openai_evals(tmp_path):
    prompt = [{"role": "user", "content": "q"}]
    lines = [{"spec": {"run_id": "r", "eval_name": "qa.v0", "completion_fns": ["m"]}}]
    for k in range(3):
        events = [
            ("sampling", {"prompt": prompt, "sampled": [f"answer {k}"]}),
            ("sampling", {"prompt": "grade it", "sampled": ["Y"]}),
            ("match", {"correct": k == 1, "expected": "e", "picked": "answer"}),
            ("metrics", {"choice": "ABC"[k], "score": k / 2}),
        ]
        lines += [
            {"run_id": "r", "event_id": 0, "sample_id": f"qa.{k}", "type": kind, "data": data} for kind, data in events
        ]
    found = columns(written(tmp_path / "record.jsonl", [*lines, {"final_report": {"accuracy": 0.3}, "run_id": "r"}]))
    assert found["id"] == ["qa.0", "qa.1", "qa.2"] and found["output"] == ["answer 0", "answer 1", "answer 2"]
    assert found["input"] == ["q"] * 3 and found["target"] == ["e"] * 3
    assert found["match"] == ["fail", "pass", "fail"] and found["choice"] == ["A", "B", "C"]
    assert found["score"] == [0.0, 0.5, 1.0] and found["completion_fns"] == ["m"] * 3


# ---------------------------------------------------------------- sessions and refusals


def test_a_session_is_made_of_a_log_and_opens_again(tmp_path):
    path = written(tmp_path / "log.json", inspect_log([sample(2 * k % 3, id=k) for k in range(30)]))
    pool = Pool.from_table(
        path, id="id", prediction=["match"], features=["near.score"], slices=["topic"], show=["input", "output"]
    )
    session = Session.create(tmp_path / "s.altmas", pool, metrics=["share[pass]"], budget=5)
    session.tell(session.ask(1)[0].id, "pass")
    session.close()
    with Session.open(tmp_path / "s.altmas") as again:
        assert len(again.pool) == 30 and again.pool.models[0].name == "match" and len(again.history.labels) == 1


REFUSED = {
    "other.json": ({"rows": [1]}, "an object with 'rows', which is no log of an evaluation tool that is known"),
    "list.json": ([1, 2], "holds a list, which is no log"),
    "header.json": (inspect_log(None), "is an Inspect log without samples; nothing can be tested"),
    "sample.json": (inspect_log([sample(0), 7]), "samples 1 is a int; expected an object"),
    "empty.json": ({"testCases": []}, "is a DeepEval test run without testCases"),
    "row.json": ({"results": [promptfoo_row(0), {"success": True}]}, "holds 'success' where a promptfoo result"),
    "lines.jsonl": ([lm_eval_row(0), {"doc": {}}], "where a sample of lm-eval with 'doc_id' was expected"),
    "number.jsonl": ([lm_eval_row(0), 3], "line 1 is a int; expected an object"),
    "spec.jsonl": ([{"spec": {"run_id": "r"}}], "without events of samples"),
    "plain.jsonl": ([{"id": 1}], "is no log of an evaluation tool that is known: expected Inspect"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_file_that_does_not_fit_is_refused_in_a_sentence(tmp_path, name):
    content, expected = REFUSED[name]
    with pytest.raises(FileError) as refused:
        read_evaluation(written(tmp_path / name, content))
    assert expected in str(refused.value) and str(tmp_path / name) in str(refused.value)


@pytest.mark.parametrize(
    "content", [b'{"version": 2, "eval"', b"PK\x03\x04 and no more", b"\xff\xfe\x00", b"[" * 10**5]
)
@pytest.mark.parametrize("ending", ["json", "eval"])
def test_a_damaged_file_is_refused_in_a_sentence(tmp_path, content, ending):
    path = tmp_path / f"log.{ending}"
    path.write_bytes(content)
    for read in (read_evaluation, lambda one: Pool.from_table(one, prediction="match")):
        with pytest.raises(FileError, match="cannot be read as|is not UTF-8|no log"):
            read(path)


def test_a_zip_file_of_something_else_is_refused(tmp_path):
    with zipfile.ZipFile(tmp_path / "log.eval", "w") as archive:
        archive.writestr("notes.txt", "x")
    with pytest.raises(FileError, match=r"without header\.json; expected an \.eval file of Inspect"):
        read_evaluation(tmp_path / "log.eval")


def test_a_column_that_is_not_there_names_those_that_are(tmp_path):
    path = written(tmp_path / "log.json", inspect_log([sample(0), sample(1)]))
    with pytest.raises(FileError, match=r"has no column 'macth'.*'?match'?.*columns: .*near\.score"):
        Pool.from_table(path, prediction="macth")
