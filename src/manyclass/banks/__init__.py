"""Banks: the fitted binary models of all columns, with one call for the scores of all."""

from manyclass.banks.base import Bank, ConstantModel, ObjectiveTerms, Untrusted
from manyclass.banks.fit import fit_bank, is_kernel_machine, read_by_bank, takes_any_rows
from manyclass.banks.fitter import BankFitter
from manyclass.banks.grouped import GroupBank, fit_groups
from manyclass.banks.linear import LinearBank
from manyclass.banks.native import NativeBank, fit_native, is_multiclass
from manyclass.banks.prefit import is_prefit, prefit_bank
from manyclass.banks.score_kinds import (
    CENTRED,
    LOG_ODDS,
    MARGIN,
    PROBABILITY,
    ScoreKind,
    response_kind,
)
from manyclass.banks.svm.bank import KernelBank

__all__ = [
    "CENTRED",
    "LOG_ODDS",
    "MARGIN",
    "PROBABILITY",
    "Bank",
    "BankFitter",
    "ConstantModel",
    "GroupBank",
    "KernelBank",
    "LinearBank",
    "NativeBank",
    "ObjectiveTerms",
    "ScoreKind",
    "Untrusted",
    "fit_bank",
    "fit_groups",
    "fit_native",
    "is_kernel_machine",
    "is_multiclass",
    "is_prefit",
    "prefit_bank",
    "read_by_bank",
    "response_kind",
    "takes_any_rows",
]
