"""Write decathlon_prince.json: python decathlon_prince.py, in this folder. Needs prince (MIT) and pandas."""

import json
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
EXTRA = ["Rank", "Points"]


def described(prince: Any, table: Any, scaled: bool) -> dict[str, Any]:
    """Five components of the ten events, in prince's own names."""
    active = list(table.columns[:10])
    pca = prince.PCA(n_components=5, rescale_with_std=scaled, engine="scipy")
    pca = pca.fit(table[[*active, *EXTRA]], supplementary_columns=EXTRA)
    return {
        "eigenvalues": pca.eigenvalues_.tolist(),
        "row_coordinates": pca.row_coordinates(table[active]).to_numpy().tolist(),
        "row_contributions": pca.row_contributions_.to_numpy().tolist(),
        "row_cosine_similarities": pca.row_cosine_similarities(table[active]).to_numpy().tolist(),
        "column_coordinates": pca.column_coordinates_.loc[active].to_numpy().tolist(),
        "column_correlations": pca.column_correlations.loc[active].to_numpy().tolist(),
        "column_contributions": pca.column_contributions_.to_numpy().tolist(),
        "supplementary_correlations": pca.column_correlations.loc[EXTRA].to_numpy().tolist(),
    }


def main() -> None:
    """Fit, round to twelve digits, write."""
    import pandas as pd
    import prince  # type: ignore[import-not-found]  # only this script needs it, and no test runs it

    table = pd.read_csv(HERE / "decathlon.csv", index_col="athlete")
    found: dict[str, Any] = {"source": f"prince {prince.__version__}; script decathlon_prince.py"}
    found |= {name: described(prince, table, name == "scaled") for name in ("scaled", "unscaled")}
    rounded = json.loads(json.dumps(found), parse_float=lambda x: float(f"{float(x):.12g}"))
    (HERE / "decathlon_prince.json").write_text(json.dumps(rounded) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
