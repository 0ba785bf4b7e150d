"""A file as hospitals have them goes from `schema new` through `check` to a release, with a text editor alone."""

import ast
import contextlib
import datetime as dt
import re
import shlex
import sqlite3
from pathlib import Path

import numpy as np
import openpyxl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import matrixdp as mdp
from matrixdp.domain.file_rules import FileRules
from matrixdp.domain.schema_file import parse_schema
from matrixdp.errors import join_names
from matrixdp.records import open_records
from matrixdp.records.checking import check_table
from matrixdp.records.files import open_files
from matrixdp.release.options import split_names

TITLE, NAMES = "Klinik Musterstadt, Auszug 2025", ["Patient", "Geburt", "Station", "Raucher", "Größe", "Tage"]
UNITS = ["", "", "", "", "cm", "d"]
ABSENT = ["k.A.", "-", "n/a"]
COLUMNS = """
Geburt = { type = "date", lower = 1920-01-01, upper = 2020-12-31 }
Station = { type = "category", levels = ["Chirurgie", "Innere", "Pädiatrie"] }
Raucher = { type = "yes/no" }
"Größe" = { type = "number", lower = 50, upper = 220 }
Tage = { type = "number", lower = 0, upper = 30 }
"""
TOTAL = ("--epsilon", "4", "--delta", "1e-6")


def make_rows(people=150):
    """Several visits a patient, two formats of dates, three words for missing values, and typing errors."""
    rng = np.random.default_rng(5)
    wards, chances = ["Chirurgie", "Innere", "Pädiatrie", "Chirugie", "chirurgie", "Innere "], [40, 30, 20, 5, 3, 2]
    for i in range(people):
        for _ in range(rng.integers(1, 4)):
            born = dt.date(1930, 1, 1) + dt.timedelta(days=int(rng.integers(25_000)))
            size = f"{rng.normal(170, 10):.1f}".replace(".", ",") if rng.random() < 0.85 else rng.choice(ABSENT)
            ward = rng.choice(wards, p=np.array(chances) / 100)
            layout = "%d.%m.%Y" if rng.random() < 0.7 else "%Y-%m-%d"
            smokes, days = rng.choice(["ja", "nein"]), str(rng.integers(0, 40))
            yield [f"P{i:04d}", born.strftime(layout), str(ward), str(smokes), str(size), days]


def write_csv(path, rows):
    lines = [[TITLE, *[""] * 5], NAMES, UNITS, *rows]
    path.write_text("\n".join(map(";".join, lines)) + "\n", encoding="latin-1")


def write_book(path, rows):
    book = openpyxl.Workbook()
    for row in [[TITLE], NAMES, UNITS, *rows]:
        book.active.append([None if cell == "" else cell for cell in row])
    book.save(path)


def clean(rows):
    """The same rows as a table that needs no rules."""
    wards = {"Chirugie": "Chirurgie", "chirurgie": "Chirurgie", "Innere ": "Innere"}
    for patient, born, ward, smokes, size, days in rows:
        day = dt.datetime.strptime(born, "%d.%m.%Y" if "." in born else "%Y-%m-%d").date()
        number = None if size in ABSENT else float(size.replace(",", "."))
        yield [patient, day, wards.get(ward, ward), smokes == "ja", number, int(days)]


def edit(template, entries):
    """What a steward writes: public bounds, whose a row is, and the entries that `check` asks for."""
    files = entries.pop("[files]", "")
    files = "[files]\n" + "\n".join(dict.fromkeys([*re.findall(r"^\w+ = [^#\n]*(?=    #)", template, re.M), files]))
    columns = COLUMNS
    for name, entry in entries.items():
        columns = re.sub(rf"(?m)^({re.escape(name)} = .*?) }}$", rf"\1, {entry} }}", columns)
    return f'{files}\n[person]\ncolumn = "Patient"\n[columns]{columns}'


@pytest.mark.parametrize("name", ["klinik.csv", "klinik.xlsx"])
def test_a_messy_file_becomes_a_release(tmp_path, monkeypatch, matrixdp, name):
    monkeypatch.chdir(tmp_path)
    rows = list(make_rows())
    (write_csv if name.endswith("csv") else write_book)(Path(name), rows)
    template = matrixdp("schema", "new", name).out
    assert "header_row = 2" in template
    assert ('encoding = "cp1252"' in template) == name.endswith("csv")
    assert '# person = { column = "Patient" }' in template
    assert 'Geburt = { type = "date"' in template
    assert not any(row[0] in template or row[1] in template for row in rows)

    Path("schema.toml").write_text(edit(template, {}), encoding="utf-8")
    found = matrixdp("check", name, "--schema", "schema.toml", "--json")
    assert found.code == 3
    checked = found.json()
    typos = [one for one in checked["problems"] if one["examples"] and "'Chirugie'" in one["examples"][0]]
    wrong = [i for i, row in enumerate(rows, start=4) if row[2] == "Chirugie"]
    assert (typos[0]["rows"], typos[0]["first"]) == (len(wrong), wrong[:1])
    assert typos[0]["examples"] == [f"'Chirugie' ({len(wrong)}): Chirurgie?"]
    assert "150 different ids" in checked["facts"][0]
    entries = checked["entries"]
    assert entries["[files]"] == "skip_rows = 1"
    assert 'missing_words = ["n/a", ' in entries['"Größe"']
    assert 'decimal = ","' in entries['"Größe"']
    shown = matrixdp("check", name, "--schema", "schema.toml")
    assert "For the owner of the data alone" in shown.out

    Path("schema.toml").write_text(edit(template, entries), encoding="utf-8")
    again = matrixdp("check", name, "--schema", "schema.toml", "--json")
    assert (again.code, [one["what"] for one in again.json()["problems"]]) == (0, ["values are above upper"])
    assert matrixdp("ledger", "new", "l.db", "--dataset", "k", *TOTAL, "--person", "Patient").code == 0
    words = ("--query", "everything", *TOTAL, "--ledger", "l.db", "--dataset", "k", "--out", "out")
    released = matrixdp("release", name, "--schema", "schema.toml", *words)
    assert released.code == 0, released.err
    assert "Pädiatrie" in released.out

    pq.write_table(pa.Table.from_pylist([dict(zip(NAMES, row, strict=True)) for row in clean(rows)]), "clean.parquet")
    schema = parse_schema(Path("schema.toml").read_text(encoding="utf-8"))
    query = mdp.TableMoments(schema.columns, 150, person=schema.person)
    integers = [
        query.evaluate(open_records(place, rules=schema.rules), clip=True, missing="error")
        for place in (name, "clean.parquet")
    ]
    assert np.array_equal(*integers)


def test_errors_name_the_entry_that_solves_them_and_show_no_value(tmp_path, monkeypatch, matrixdp):
    monkeypatch.chdir(tmp_path)
    rows = list(make_rows(20))
    write_csv(Path("klinik.csv"), rows)
    rules = {
        'encoding = "cp1252"': 'set encoding = "cp1252" under [files]',
        "header_row = 2": "header_row = 2 under",
        "skip_rows = 1": "an id is missing",
    }
    columns = f'[person]\ncolumn = "Patient"\n[columns]{COLUMNS}'
    for left_out, message in rules.items():
        files = "\n".join(["[files]", *(rule for rule in rules if rule != left_out)])
        Path("schema.toml").write_text(f"{files}\n{columns}", encoding="utf-8")
        words = ("--query", "everything", *TOTAL, "--no-ledger", "--out", "out")
        refused = matrixdp("release", "klinik.csv", "--schema", "schema.toml", *words)
        assert refused.code == 3
        assert message in refused.err
        assert not any(value and value in refused.err for row in rows for value in row if len(value) > 3)


def test_check_finds_another_separator_bad_lines_and_columns_that_are_not_there(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("Weight, kg;Age;visitor_id\n" + "70;30;a\n71;31;a\n72;b\n73;abc;b\n74;200;b\n")
    columns = "[columns]\nAge = { lower = 0, upper = 120 }\nWeigth = { lower = 0, upper = 300 }\n"
    found = check_table(path, parse_schema(f"[files]\ndelimiter = ','\n{columns}"))
    by_what = {problem.what: problem for problem in found.problems}
    assert by_what["another character separates the columns"].write == {"delimiter": ";"}
    assert by_what["lines have more or fewer values than there are columns"].first == (4,)
    assert by_what["there is no such column in the file"].column == "Weigth"
    assert by_what["texts that are no numbers"].first == (5,)  # the line before it is no record, and is counted
    assert by_what["ids are there more than once"].advice.endswith('[person] column = "visitor_id"')
    assert not by_what["values are above upper"].stops
    assert found.stops
    assert found.rows == 4


@pytest.mark.parametrize("last", ["Total: 30 rows", '"Total";;;', "Total;;unreadable;"])
def test_a_line_that_is_no_record_is_found_and_left_out(tmp_path, last):
    rows = [f"P{i};{i % 7};{i % 50};-" for i in range(30)]
    plain, total = tmp_path / "a.csv", tmp_path / "b.csv"
    plain.write_text("\n".join(["Patient;Age;Stay;Note", *rows, ""]))
    total.write_text("\n".join(["Patient;Age;Stay;Note", *rows, last, ""]))
    text = "[columns]\nAge = { lower = 0, upper = 120, missing = true }\nStay = { lower = 0, upper = 60 }\n"
    found = check_table(total, parse_schema(text))
    problem = next(one for one in found.problems if one.what == "the last line seems to be no record")
    assert found.entries() == {"[files]": 'skip_lines = ["Total"]'}  # and nothing for its cells
    assert (found.rows, problem.stops) == (30, ";" not in last)
    schema = parse_schema(f'[files]\nskip_lines = ["Total"]\n{text}')
    assert not check_table(total, schema).stops
    assert not any(one.write for one in check_table(plain, parse_schema(text)).problems)
    read = [open_records(path, rules=schema.rules) for path in (plain, total)]
    query = mdp.TableMoments(schema.columns, 30)
    integers = [query.evaluate(one, clip=True, missing="error") for one in read]
    assert np.array_equal(*integers)


def test_a_skipped_line_changes_no_other(tmp_path):
    """Each line is judged by its own first cell: wherever one is inserted, all others are read as before."""
    rules, path = FileRules(skip_lines=["Total"]), tmp_path / "a.csv"
    rows = [f"P{i};{i}" for i in range(5)]
    for extra, kept in {"Total;3": [], " Total": [], "total;3": ["3"], "P9;Total": ["Total"]}.items():
        for place in range(6):
            path.write_text("\n".join(["Patient;Age", *rows[:place], extra, *rows[place:], ""]))
            (file,) = open_files(path, rules=rules).files
            read = [one for batch in file.batches(["Age"], ["Age"]) for one in batch["Age"].to_pylist()]
            assert read == [*"01234"[:place], *kept, *"01234"[place:]]
            assert file.count() == len(read)


def test_windows_signs_are_no_latin_1(tmp_path):
    path, schema = tmp_path / "a.csv", "[files]\nencoding = {}\n[columns]\nWard = {{ levels = ['n€', 's'] }}\n"
    path.write_bytes("Ward;Größe\nn€;1\ns;2\n".encode("cp1252"))
    for given in ("latin-1", "utf-8"):
        (problem, *_) = check_table(path, parse_schema(schema.format(repr(given)))).problems
        assert problem.write == {"encoding": "cp1252"}
    assert not check_table(path, parse_schema(schema.format("'cp1252'"))).stops


def test_numbers_that_stand_for_missing_values_are_named(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("x\n1\n999\n-1\n12\nNA\n")
    found = check_table(path, parse_schema("[columns]\nx = { lower = 0, upper = 9, missing = true }\n"))
    below, above = found.problems
    assert 'missing_words = ["NA", "-1"]' in below.advice
    assert "If 999 means that a value is missing" in above.advice
    assert "12" not in above.advice


def test_rows_that_repeat_the_names_and_tables_without_rows_are_found(tmp_path):
    schema = parse_schema("[columns]\nage = { lower = 0, upper = 120 }\nward = { levels = ['north', 'south'] }\n")
    path = tmp_path / "t.csv"
    path.write_text("age;ward\n30;north\n40;south\nage;ward\n50;north\n")
    (problem,) = check_table(path, schema).problems
    assert (problem.what, problem.rows, problem.first) == ("rows repeat the names of the columns", 1, (4,))
    assert problem.write == {"skip_lines": ["age"]}
    for text, levels in (
        ("age;ward\n30;north\n40;ward\n", "'north', 'south'"),  # one cell alone
        ("ward;age\nward 1;30\nward;age\n", "'ward 1', 'ward 2'"),  # lines of records begin so, too
    ):
        path.write_text(text)
        other = parse_schema(f"[columns]\nage = {{ lower = 0, upper = 120 }}\nward = {{ levels = [{levels}] }}\n")
        assert all("skip_lines" not in one.write for one in check_table(path, other).problems)
    path.write_text("age;ward\n")
    (problem,) = check_table(path, schema).problems
    assert problem.what == "there are no rows below the names of the columns"


def test_decimal_points_and_commas_in_one_column_are_mistakes_of_the_file(tmp_path):
    path, schema = tmp_path / "a.csv", "[columns]\nx = {{ lower = 0, upper = 9, decimal = '{}' }}\n"
    for text, given, advice in (
        ("1.5\n2.5\n3,5\n4\n", ".", "Other values have decimal points: correct the file."),
        ("1.5\n2.5\n3,5\n4\n", ",", "Other values have decimal commas: correct the file."),
        ("1\n2\n3,5\n", ".", ""),
    ):
        path.write_text("x\n" + text.replace("3,5", '"3,5"'))
        (problem,) = check_table(path, parse_schema(schema.format(given))).problems
        assert problem.what in ("decimal commas", "decimal points")
        assert (problem.advice, problem.write) == (advice, {} if advice else {"decimal": ","})
    path.write_text('x\n1.250\n"1.250,5"\n"3,5"\n')
    assert check_table(path, parse_schema(schema.format("."))).entries()["x"] == 'decimal = ",", thousands = "."'


def test_a_cover_sheet_two_kinds_of_ids_and_odd_words_are_found(tmp_path, matrixdp):
    names = ["Fall-Nr.", "Patienten-Nr.", "CRP", "Kosten"]
    odd = ["<0,5", "nicht best.", "k. A."]
    rows = [[f"F{i // 2 if i < 4 else i}", i // 3, f"{i},5", f"{i}.250,00"] for i in range(30)]
    rows = [[*row[:2], odd[i] if i < 3 else row[2], "–" if i == 5 else row[3]] for i, row in enumerate(rows)]
    book = openpyxl.Workbook()
    book.active.append(["Cover"])
    sheet = book.create_sheet("Fälle")
    for row in [["Title"], names, *rows, ["Summe", None, None, "1,0"]]:
        sheet.append(row)
    book.save(tmp_path / "a.xlsx")
    template = matrixdp("schema", "new", str(tmp_path / "a.xlsx")).out
    assert 'person = { column = "Patienten-Nr." }' in template
    assert '# "Fall-Nr." is left out' in template
    columns = "CRP = { lower = 0, upper = 50 }\nKosten = { lower = 0, upper = 90000 }\n"
    schema = parse_schema(f'person = {{ column = "Patienten-Nr." }}\n[columns]\n{columns}')
    found = check_table(tmp_path / "a.xlsx", schema)
    entries = found.entries()
    assert entries.pop("[files]").splitlines() == ["header_row = 2", 'sheet = "Fälle"', 'skip_lines = ["Summe"]']
    assert entries["CRP"] == 'missing_words = ["nicht best.", "k. A."], missing = true, decimal = ","'
    assert entries["Kosten"] == 'missing_words = ["–"], missing = true, thousands = ".", decimal = ","'
    by_what = {problem.what: problem for problem in found.problems}
    advice = by_what["texts that are no numbers"].advice  # and not that it is a category
    assert advice.endswith('write missing = true, missing_words = ["nicht best.", "k. A.", "<0,5"]')
    assert (by_what["ids are there more than once"].column, by_what["ids are there more than once"].rows) == (
        names[0],
        2,
    )
    assert len(found.facts) == 2
    assert found.rows == 30


def test_numbers_with_decimals_are_no_ids(tmp_path):
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"customer_no": [1.5, 1.5], "visit_no": [3, 3], "x": [1, 2]}), path)
    found = check_table(path, parse_schema("[columns]\nx = { lower = 0, upper = 9 }\n"))
    assert [one.column for one in found.problems if "ids" in one.what] == ["visit_no"]
    assert not found.stops


def test_values_of_several_types_in_a_database_are_listed(tmp_path):
    pytest.importorskip("adbc_driver_sqlite")
    path = tmp_path / "a.sqlite"
    with contextlib.closing(sqlite3.connect(path)) as made:
        made.execute("CREATE TABLE t (age, ward)")
        made.executemany("INSERT INTO t VALUES (?, ?)", [(30, "a"), ("k.A.", "b"), (None, "a"), (999, "a")])
        made.commit()
    schema = parse_schema('[columns]\nage = { lower = 0, upper = 99 }\nward = { levels = ["a", "b"] }\n')
    found = check_table(f"sqlite:///{path}?table=t", schema)
    assert found.entries() == {"age": 'missing_words = ["k.A."], missing = true'}
    assert "If 999 means" in found.problems[-1].advice
    (problem,) = check_table(f"sqlite:///{path}?table=u", schema).problems
    assert (problem.what, "no such table" in problem.advice) == ("it cannot be read", True)


def test_toml_errors_name_levels_beyond_ascii(tmp_path, matrixdp):
    path = tmp_path / "s.toml"
    path.write_text('[columns]\nsex = { levels = ["männlich"], aliases = { männlich = ["1"] } }\n', encoding="utf-8")
    assert "names of columns and levels that have more than the letters a to z" in matrixdp("schema", "check", path).err


def test_check_compares_the_number_of_records(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("x\n1\n2\n")
    text = "{} = 5\n[columns]\nx = {{ lower = 0, upper = 9 }}\n"
    (problem,) = check_table(path, parse_schema(text.format("records"))).problems
    assert "records = 5, and there are 2" in problem.what
    assert "expected_records" in problem.advice
    assert not check_table(path, parse_schema(text.format("expected_records"))).problems


@pytest.mark.parametrize("package", ["release", "report", "studio", "answers"])
def test_what_check_shows_is_no_part_of_releases_and_pages(package):
    for path in (Path(mdp.__file__).parent / package).rglob("*.py"):
        names = [getattr(node, "module", "") or "" for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))]
        assert not any("checking" in str(one) for one in names), path


class TestNamesWithSpacesAndCommas:
    """A head such as "age, bmi" has a space before its second name, and "weight, kg" contains a comma."""

    SCHEMA = """
[columns]
age = { type = "number", lower = 0, upper = 100 }
" bmi" = { type = "number", lower = 10, upper = 60 }
"weight, kg" = { type = "number", lower = 20, upper = 200 }
ward = { type = "category", levels = ["a", "b"] }
"""
    QUESTION = ("--query", "correlation", "--epsilon", "1", "--delta", "1e-6", "--records", "300")

    @pytest.fixture(autouse=True)
    def schema(self, tmp_path, monkeypatch):
        monkeypatch.chdir(tmp_path)
        Path("schema.toml").write_text(self.SCHEMA, encoding="utf-8")

    def design(self, matrixdp, *words):
        return matrixdp("design", "--schema", "schema.toml", *self.QUESTION, *words)

    def test_they_are_chosen_in_double_quotes(self, matrixdp):
        done = self.design(matrixdp, "--columns", 'age," bmi","weight, kg"', "--json")
        assert done.code == 0, done.err
        assert " bmi" in done.out
        assert "weight, kg" in done.out

    def test_a_message_lists_names_as_they_are_to_be_written(self, matrixdp):
        done = self.design(matrixdp, "--columns", "age, bmi")
        assert 'has no column \'bmi\'; it has age, " bmi", "weight, kg", ward.' in done.err.replace("\n", " ")

    def test_the_remedy_for_a_category_can_be_pasted(self, matrixdp):
        message = self.design(matrixdp).err
        words = shlex.split(message[message.index("(--columns") + 1 : message.index("), or release")])
        assert self.design(matrixdp, *words).code == 0

    @pytest.mark.parametrize(
        "names", [("age", " bmi"), ("weight, kg",), ('"a"', 'b"c', '",'), ("a ", "ä\u00a0", "'x'")]
    )
    def test_what_is_written_is_read_again(self, names):
        assert split_names(join_names(names)) == names
        assert split_names(f" {join_names(names, ' , ')} ") == names

    def test_a_quotation_mark_that_ends_nowhere_is_a_character(self):
        assert split_names('5" pipe,"open, b') == ('5" pipe', '"open', "b")
