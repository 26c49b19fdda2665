"""``gramian project``, ``predict`` and ``info``: what they say of new rows is what the model says of them."""

import io
import json

import numpy as np
import pytest
from sklearn.datasets import make_moons

import gramian
from gramian.persistence import load, save

FAST = ("--no-report", "--no-pictures")


def printed(result, columns, tmp_path):
    assert result.exit_code == 0, result.output
    path = tmp_path / "printed.csv"
    path.write_text(result.stdout)
    return columns(path)


def test_projected_training_rows_are_the_scores(run, columns, tmp_path):
    run("pca", "flowers.csv", "--label", "species", "--id", "plant", "-k", 2, "--out", "out", *FAST)
    found = printed(run("project", "out/model.gramian", "flowers.csv", "--id", "plant"), columns, tmp_path)
    scores = columns(tmp_path / "out" / "scores.csv")
    for name in ("id", "PC1", "PC2"):
        np.testing.assert_array_equal(found[name], scores[name])


def test_columns_are_matched_by_name(run, columns, tmp_path):
    run("ridge", "houses.csv", "--target", "price", "--out", "out", *FAST)
    result = run(
        "predict", "out/model.gramian", "new-houses.csv", "--out", "prices.csv"
    )  # its columns are in another order
    assert result.exit_code == 0, result.output
    assert result.stdout == ""
    found, new = columns(tmp_path / "prices.csv"), columns(tmp_path / "new-houses.csv")
    model = load(tmp_path / "out" / "model.gramian")
    X = gramian.open(np.column_stack([new["area"], new["rooms"], new["age"]]))
    values, spread = model.predict(X, return_std=True)
    np.testing.assert_allclose(found["prediction"], values, rtol=1e-14)
    np.testing.assert_allclose(found["std"], spread, rtol=1e-14)
    assert np.all((found["lower"] < values) & (values < found["upper"]))


def test_a_column_that_is_not_there_is_named(run, tmp_path):
    run("ridge", "houses.csv", "--target", "price", "--out", "out", *FAST)
    (tmp_path / "few.csv").write_text("area,rooms\n80,3\n")
    result = run("predict", "out/model.gramian", "few.csv")
    assert result.exit_code == 3
    assert "age" in result.stderr
    np.save(tmp_path / "wide.npy", np.ones((2, 5)))
    result = run("predict", "out/model.gramian", "wide.npy")
    assert result.exit_code == 3
    assert len(result.stderr.strip().splitlines()) == 1


def test_levels_of_text_are_those_of_the_fit(run, columns, tmp_path):
    run("pca", "flowers.csv", "--categorical", "onehot", "--id", "plant", "--out", "out", *FAST)
    lines = (tmp_path / "flowers.csv").read_text().splitlines()
    (tmp_path / "roses.csv").write_text("\n".join([lines[0], *(line for line in lines if "rose" in line)]) + "\n")
    found = printed(run("project", "out/model.gramian", "roses.csv"), columns, tmp_path)
    scores = columns(tmp_path / "out" / "scores.csv")
    np.testing.assert_allclose(found["PC1"], scores["PC1"][:20], rtol=1e-12)
    (tmp_path / "new.csv").write_text(f"{lines[0]}\np,5,3,1,9,daisy\n")
    result = run("project", "out/model.gramian", "new.csv")
    assert result.exit_code == 0
    assert "daisy" in result.stderr
    assert np.isfinite(printed(result, columns, tmp_path)["PC1"]).all()  # PCA takes what is missing
    ridge = ("ridge", "flowers.csv", "--target", "sum", "--id", "plant", "--alpha", 1, "--out", "fit", *FAST)
    assert run(*ridge).exit_code == 0
    more = f"{lines[0]}\np,5,3,1,9,daisy\nq,5,3,1,9,rose\nr,5,3,,9,lily\n"
    (tmp_path / "new.csv").write_text(more)
    result = run("predict", "fit/model.gramian", "new.csv", "--id", "plant")
    assert result.exit_code == 0, result.output
    assert "daisy" in result.stderr
    found = printed(result, columns, tmp_path)
    assert found["id"].tolist() == ["p", "q", "r"]
    assert np.isfinite(found["prediction"]).tolist() == [False, True, False]


@pytest.mark.parametrize(
    ("arguments", "data", "expected"),
    [
        (["kernel-ridge", "curve.csv", "--target", "y", "--alpha", "0.1"], "curve.csv", "prediction"),
        (["mixture", "geyser.csv", "-k", "2", "--covariance", "VVV"], "geyser.csv", "component"),
        (["fit", "waiting.csv", "--family", "gamma"], "waiting.csv", "log_density"),
    ],
    ids=["kernel-ridge", "mixture", "fit"],
)
def test_every_model_that_predicts_does(run, columns, tmp_path, arguments, data, expected):
    assert run(*arguments, "--out", "out", *FAST).exit_code == 0
    found = printed(run("predict", "out/model.gramian", data), columns, tmp_path)
    assert np.all(np.isfinite(found[expected]))
    if expected == "prediction":
        fitted = columns(tmp_path / "out" / "predictions.csv")
        np.testing.assert_allclose(found["prediction"], fitted["fitted"], rtol=1e-12)
        assert np.all(found["bound"] < found["std"])
    if expected == "component":
        np.testing.assert_array_equal(found["component"], columns(tmp_path / "out" / "clusters.csv")["component"])
    if expected == "log_density":
        summary = json.loads((tmp_path / "out" / "certificate.json").read_text())
        assert -found["log_density"].sum() == pytest.approx(summary["objective"][-1])


@pytest.mark.parametrize(
    "model",
    [gramian.KernelRidgeClassifier(gamma=2.0), gramian.KernelLogisticRegression(0.1, gamma=2.0)],
    ids=["least squares", "likelihood"],
)
def test_classifiers_give_classes_and_probabilities(run, columns, tmp_path, model):
    X, y = make_moons(60, noise=0.1, random_state=0)
    model.fit(X, np.array(["down", "up"])[y])
    save(model, tmp_path / "classes.gramian")
    np.save(tmp_path / "x.npy", X)
    found = printed(run("predict", "classes.gramian", "x.npy"), columns, tmp_path)
    np.testing.assert_array_equal(found["class"], model.predict(X))
    np.testing.assert_allclose(found["probability down"] + found["probability up"], 1.0)


def test_each_command_refuses_the_models_of_the_other(run, tmp_path):
    run("pca", "geyser.csv", "--out", "pca", *FAST)
    run("fit", "waiting.csv", "--out", "fit", *FAST)
    wrong = run("predict", "pca/model.gramian", "geyser.csv")
    assert (wrong.exit_code, "gramian project" in wrong.stderr) == (2, True)
    wrong = run("project", "fit/model.gramian", "waiting.csv")
    assert (wrong.exit_code, "gramian predict" in wrong.stderr) == (2, True)
    (tmp_path / "no.gramian").write_bytes(b"not a model at all")
    for command in (["project", "no.gramian", "geyser.csv"], ["info", "no.gramian"]):
        wrong = run(*command)
        assert wrong.exit_code == 3
        assert "no.gramian" in wrong.stderr


def test_tables_are_not_overwritten_and_whole(run, tmp_path):
    run("pca", "geyser.csv", "--out", "pca", *FAST)
    (tmp_path / "mine.csv").write_text("mine")
    result = run("project", "pca/model.gramian", "geyser.csv", "--out", "mine.csv")
    assert result.exit_code == 2
    assert (tmp_path / "mine.csv").read_text() == "mine"
    assert run("project", "pca/model.gramian", "geyser.csv", "--out", "mine.csv", "--force").exit_code == 0
    assert (tmp_path / "mine.csv").read_text().startswith("row,PC1,PC2")
    wrong = run("project", "pca/model.gramian", "geyser.csv", "--out", "mine.txt")
    assert (wrong.exit_code, ".parquet" in wrong.stderr) == (2, True)


def test_json_holds_the_table_unless_it_is_written(answer, run):
    run("pca", "geyser.csv", "--out", "pca", *FAST)
    found = answer("project", "pca/model.gramian", "geyser.csv")
    assert len(found["table"]["PC1"]) == found["rows"] == 120
    found = answer("project", "pca/model.gramian", "geyser.csv", "--out", "scores.csv")
    assert "table" not in found
    assert found["out"] == "scores.csv"


def test_info_of_a_table(answer, tmp_path):
    (tmp_path / "people.csv").write_text("name;height;sex\nAnn;1,60;f\nBo;NA;m\nCy;1,81;m\n")
    found = answer("info", "people.csv")
    assert found["rows"] == 3
    assert [c["type"] for c in found["columns"]] == ["text", "number", "text"]
    height = found["columns"][1]
    assert (height["missing"], height["different"]) == (1, 2)
    assert (height["smallest"], height["largest"]) == (1.6, 1.81)
    assert any("decimal comma" in note for note in found["notes"])


def test_info_of_an_array_and_of_standard_input(answer, tmp_path, run):
    X = np.random.default_rng(0).normal(size=(30, 3))
    X[4, 1] = np.nan
    np.save(tmp_path / "x.npy", X)
    found = answer("info", "x.npy")
    assert [c["missing"] for c in found["columns"]] == [0, 1, 0]
    np.testing.assert_allclose([c["largest"] for c in found["columns"]], np.nanmax(X, axis=0))
    buffer = io.BytesIO()
    np.save(buffer, X)
    assert answer("info", "-", input=buffer.getvalue())["rows"] == 30
    assert "30 rows" in run("info", "x.npy").output


def test_info_of_a_model(answer, run):
    run("pca", "geyser.csv", "-k", 2, "--out", "pca", *FAST)
    found = answer("info", "pca/model.gramian")
    assert found["kind"] == "PCA"
    assert found["metadata"]["columns"] == ["eruption", "waiting"]
    assert "PCA(n_components=2" in run("info", "pca/model.gramian").output
