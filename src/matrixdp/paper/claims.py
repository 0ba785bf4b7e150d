"""Every comparative claim of the sections "Experimental Results" and "Discussion", with its check."""

from __future__ import annotations

from typing import NamedTuple

from matrixdp.paper.claim_checks import Check, cannot, comparable, differ, less, no_gain, published_z, slower
from matrixdp.paper.directions import PANELS, key
from matrixdp.paper.published import COMPONENT, COVARIANCE, REGRESSION, SUBSPACE, Figure


class Claim(NamedTuple):
    """One claim: where it stands, what it says, its figures, and how it is checked."""

    place: str
    text: str
    published: str
    check: Check
    z: float | None = None
    remark: str = ""


def claims() -> list[Claim]:
    """All claims, in the paper's order."""
    return [*_regression(), *_component(), *_covariance(), *_directions(), *_runtime(), *_subspace()]


def _versus(place: str, part: str, own: str, rivals: dict[str, str], figures: dict[str, Figure]) -> list[Claim]:
    """MVG has a smaller error than each rival."""
    listed = []
    for rival, name in rivals.items():
        a, b = figures[own], figures[rival]
        text = f"{own.upper()} has a smaller error than {name}"
        printed = f"{a.mean:.4g} ± {a.half:.3g} against {b.mean:.4g} ± {b.half:.3g}"
        listed.append(Claim(place, text, printed, less(part, own, rival), published_z(a, b)))
    return listed


_RIVALS = {
    "gaussian": "the Gaussian mechanism",
    "jl": "the JL transform",
    "laplace": "the Laplace mechanism",
    "exponential": "the Exponential mechanism",
}
_ALL = tuple(_RIVALS)


def _regression() -> list[Claim]:
    place, figures = "Exp. I", REGRESSION
    excess = figures["mvg-1"].mean / figures["non-private"].mean
    z = published_z(figures["mvg-1"], figures["mvg-2"])
    return [
        Claim(
            place,
            "MVG-1 is similar to the non-private baseline (here: its error is at most the published 1.325 times)",
            "0.01624 against 0.01226",
            less("exp1", "mvg-1", "non-private", factor=1 / excess),
        ),
        Claim(
            place,
            "MVG-1 beats the random guess",
            "0.01624 against 0.03989",
            less("exp1", "mvg-1", "random guess"),
            remark="So does the constant 0, which needs no data.",
        ),
        *_versus(place, "exp1", "mvg-1", _RIVALS, figures),
        Claim(
            place,
            "MVG-1 is better than the pure mechanisms by about 150% (here: by the lesser published ratio, 1.36)",
            "ratios 1.53 (Laplace), 1.36 (Exponential)",
            less("exp1", "mvg-1", "laplace", "exponential", factor=1.36),
        ),
        Claim(
            place,
            "MVG-2, which pays for its directions, is better than every non-MVG method",
            "0.01643 against 0.01913, 0.01682, 0.02482, 0.02202",
            less("exp1", "mvg-2", *_ALL),
        ),
        Claim(place, "MVG-1 is the best MVG mechanism", "0.01624 against 0.01643", less("exp1", "mvg-1", "mvg-2"), z),
    ]


def _component() -> list[Claim]:
    place, figures = "Exp. II", COMPONENT
    z = published_z(figures["mvg"], figures["exponential"])
    return [
        Claim(
            place,
            "MVG has a reasonably small error of 0.2387 (here: no larger than that)",
            "0.2384 ± 0.0215 (table)",
            less("exp2", "mvg", 0.2387),
        ),
        *_versus(place, "exp2", "mvg", _RIVALS, figures),
        Claim(place, "MVG provides the best utility of all", "0.2384", less("exp2", "mvg", *_ALL)),
        Claim(
            place,
            "The gain over the Exponential mechanism is not significant",
            "0.2384 against 0.2455",
            no_gain("exp2", "mvg", "exponential"),
            z,
        ),
        Claim(
            place,
            "With the form for positive semidefinite queries (the longer version), MVG beats the compared methods",
            "none in this version",
            less("exp2", "mvg/theorem2-psd", *_ALL),
        ),
    ]


def _covariance() -> list[Claim]:
    place, figures = "Exp. III", COVARIANCE
    return [
        Claim(
            place,
            "MVG has a very small RSS of 0.06657 (here: no larger than that)",
            "0.06657 ± 0.0019",
            less("exp3", "mvg", 0.06657),
        ),
        *_versus(place, "exp3", "mvg", _RIVALS, figures),
        Claim(
            place,
            "MVG provides the best utility of all",
            "0.06657",
            less("exp3", "mvg", *_ALL),
            remark="All rows of the identity query are at the random guess, so no order among them means anything.",
        ),
    ]


def _directions() -> list[Claim]:
    listed = []
    titles = {"exp1": "Exp. I", "exp2": "Exp. II", "exp3": "Exp. III"}
    keys = {panel: [key(panel, "theorem2", name, 1.0) for name in sets] for panel, sets in PANELS.items()}
    for panel, title in titles.items():
        names = list(PANELS[panel])
        rest = keys[panel][1:] if panel == "exp3" else keys[panel][1:-1]
        others = names[1:] if panel == "exp3" else names[1:-1]
        text = f"{title}: direction {names[0]} is better than {'; '.join(others)}"
        listed.append(Claim("Directions", text, "figure only", less("directions", keys[panel][0], *rest)))
    for panel, title in titles.items():
        text = f"{title}: the choice of directions has an effect"
        remark = "An effect, not the claimed order: see above."
        check = differ("directions", keys[panel])
        listed.append(Claim("Directions", text, "figure only", check, remark=remark))
    text = "Exp. III: directional noise is much better than i.i.d. noise (here: half the error)"
    listed.append(
        Claim("Directions", text, "figure only", less("directions", keys["exp3"][0], keys["exp3"][-1], factor=2.0))
    )
    for panel in ("exp1", "exp2"):
        text = f"{titles[panel]}: several directions have comparable performance (here: the two best within 10%)"
        listed.append(Claim("Directions", text, "figure only", comparable("directions", keys[panel][:-1])))
    robust = cannot("A conclusion from the claims above, not a measurement.")
    listed.append(Claim("Directions", "Directional noise is robust to the choice of directions", "none", robust))
    return listed


def _runtime() -> list[Claim]:
    return [
        Claim(
            "Runtime",
            "MVG runs much slower than the Gaussian and Laplace mechanisms (here: twice as slow in every experiment)",
            "ratios to MVG 0.003 to 0.28",
            slower(("gaussian", "laplace")),
        ),
        Claim(
            "Runtime",
            "MVG runs much faster than the JL transform and the Exponential mechanism (here: twice as fast)",
            "ratios to MVG 5.3 to 1174",
            slower(("jl", "exponential"), faster=True),
        ),
    ]


def _subspace() -> list[Claim]:
    own = SUBSPACE["mvg-1"]
    listed = []
    for rival in ("gaussian", "jl"):
        figure = SUBSPACE[rival]
        listed.append(
            Claim(
                "Projection",
                f"MVG-1 with all features beats {_RIVALS[rival]} on ALT and Y alone",
                f"{own.mean:.4g} against {figure.mean:.4g} ± {figure.half:.3g}",
                less("exp1", "mvg-1", ("subspace", rival)),
                published_z(own, figure),
            )
        )
    text = "The gain over both is more than 150% (here: 1.5 times)"
    both = less("exp1", "mvg-1", ("subspace", "gaussian"), ("subspace", "jl"), factor=1.5)
    listed.append(Claim("Projection", text, "ratios 1.56 and 1.76", both))
    return listed
