"""Alt texts of the pictures of the gallery, which state what a picture shows.

sphinx-gallery takes them from titles, or from the name of the file.
"""

from __future__ import annotations

import re

PICTURE = re.compile(r"(sphx_glr_(plot_\w+_\d{3})\.png\n +:alt: ).*")
ALT_TEXTS = {
    "plot_1_successor_of_svc_001": "Reliability of three support vector machines: the curves of "
    "SVC(probability=True) and CalibratedClassifierCV lie above the diagonal, that of CoupledSVC "
    "on it.",
    "plot_2_codes_001": "Four code matrices of six classes: one-vs-one with 15 columns, "
    "one-vs-rest with 6, ordinal with 5, and a sparse random code with the most.",
    "plot_3_rules_on_the_simplex_001": "Where six rules put points of a regular grid whose "
    "pairwise probabilities disagree: logit leaves the lines straight, ht-noniterative stays away "
    "from the corners, the others bend the lines.",
    "plot_3_rules_on_the_simplex_002": "Wines in a triangle of three classes, coupled by two "
    "rules: wlw2 reaches the corners, ht-noniterative does not.",
    "plot_4_incoherence_001": "Histograms of upright and rotated digits: their largest "
    "probabilities overlap more than their incoherences.",
    "plot_4_incoherence_002": "The ten most incoherent rows are rotated digits, the ten most "
    "coherent ones look upright.",
    "plot_4_incoherence_003": "Incoherence of rows that are predicted right and wrong: with a "
    "dense random code wrong rows have more of it, with one-vs-one they do not.",
    "plot_5_costs_and_rejection_001": "The more letters the clerk gets, the fewer are misdirected; "
    "the point of the costs 1 and 10 lies on the curve.",
    "plot_6_temperature_001": "Log-loss on the test set against the power: the one that was "
    "fitted on training rows is near the lowest point, 1 is not.",
    "plot_6_temperature_002": "Reliability before and after the temperature: the curve lies above "
    "the diagonal, and then on it.",
    "plot_7_boosted_naive_bayes_001": "Reliability of naive Bayes and of boosted naive Bayes: both "
    "lie below the diagonal; calibrated and coupled, it lies on it.",
    "plot_8_batches_001": "The log-loss of partial_fit falls with every batch, and stays above "
    "that of a fit on all rows.",
}
"""Alt texts by the names of the pictures. A picture without one fails the build."""


def state_findings(source: str) -> str:
    """Replace the alt texts in the source of a page of the gallery."""
    return PICTURE.sub(lambda found: found[1] + ALT_TEXTS[found[2]], source)


def setup(app):
    def replace(app, name, source):
        source[0] = state_findings(source[0])

    app.connect("source-read", replace)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
