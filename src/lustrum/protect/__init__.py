"""Protection methods, one a file or a package; each turns a table into a release, or records into safer ones.

=============================  ============================================================================
rounding                       :class:`RandomRounding`, :class:`ConventionalRounding`,
                               :class:`SmallCountRounding`, :class:`SemiControlledRounding`,
                               :class:`ControlledRounding`
perturbation by record keys    :class:`CellKey`, :class:`CellKeyMagnitude`, :class:`StochasticPerturbation`
noise                          :class:`AdditiveNoise`, :class:`MultiplicativeNoise`,
                               :class:`DifferentialPrivacy`
numbers that add up            :class:`ControlledAdjustment`, :class:`MarkovPerturbation`,
                               :class:`SimulatedTables`, :class:`TableSwapping`
records                        :class:`ProtectedPopulation`, :class:`ProtectedMagnitudes`,
                               :class:`RecordSwapping`,
                               :class:`PostRandomisation`, :class:`SimpleSampling`,
                               :class:`PoissonSampling`, :class:`StratifiedSampling`
suppression                    :class:`Suppression` no protection                  :class:`Unchanged`
=============================  ============================================================================

A policy names methods and parameters as Python does. Each method declares its abilities
(:class:`Abilities`).
:mod:`~lustrum.protect.additive.restore` fits a perturbed table to its margins again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from lustrum.lazy import offer

if TYPE_CHECKING:
    from lustrum.protect.abilities import Abilities, KeysEmptyCells, abilities_of
    from lustrum.protect.adjustment.method import ControlledAdjustment
    from lustrum.protect.cell_key import CellKey, CellKeyMagnitude, PTable, read_ptable
    from lustrum.protect.magnitudes.method import ProtectedMagnitudes
    from lustrum.protect.markov import MarkovPerturbation
    from lustrum.protect.method import Method, RecordMethod, Stage
    from lustrum.protect.noise.additive import AdditiveNoise
    from lustrum.protect.noise.multiplicative import MultiplicativeNoise
    from lustrum.protect.perturbation.design import PerturbationDesign
    from lustrum.protect.perturbation.spec import StochasticPerturbation
    from lustrum.protect.population.method import ProtectedPopulation
    from lustrum.protect.post_randomisation import PostRandomisation
    from lustrum.protect.privacy import DifferentialPrivacy
    from lustrum.protect.rounding.controlled.method import ControlledRounding
    from lustrum.protect.rounding.conventional import ConventionalRounding
    from lustrum.protect.rounding.random import RandomRounding, RoundingChannel
    from lustrum.protect.rounding.semi_controlled import SemiControlledRounding
    from lustrum.protect.rounding.small_counts import SmallCountRounding
    from lustrum.protect.sampling import PoissonSampling, SimpleSampling, StratifiedSampling
    from lustrum.protect.simulated import SimulatedTables
    from lustrum.protect.suppression.method import Suppression
    from lustrum.protect.swapping import RecordSwapping
    from lustrum.protect.swapping.tables import TableSwapping
    from lustrum.protect.unchanged import Unchanged

__all__ = [
    "Abilities",
    "AdditiveNoise",
    "CellKey",
    "CellKeyMagnitude",
    "ControlledAdjustment",
    "ControlledRounding",
    "ConventionalRounding",
    "DifferentialPrivacy",
    "KeysEmptyCells",
    "MarkovPerturbation",
    "Method",
    "MultiplicativeNoise",
    "PTable",
    "PerturbationDesign",
    "PoissonSampling",
    "PostRandomisation",
    "ProtectedMagnitudes",
    "ProtectedPopulation",
    "RandomRounding",
    "RecordMethod",
    "RecordSwapping",
    "RoundingChannel",
    "SemiControlledRounding",
    "SimpleSampling",
    "SimulatedTables",
    "SmallCountRounding",
    "Stage",
    "StochasticPerturbation",
    "StratifiedSampling",
    "Suppression",
    "TableSwapping",
    "Unchanged",
    "abilities_of",
    "read_ptable",
]

_PLACES = {
    "Abilities": "abilities",
    "AdditiveNoise": "noise.additive",
    "CellKey": "cell_key",
    "CellKeyMagnitude": "cell_key",
    "ControlledAdjustment": "adjustment.method",
    "ControlledRounding": "rounding.controlled.method",
    "ConventionalRounding": "rounding.conventional",
    "DifferentialPrivacy": "privacy",
    "KeysEmptyCells": "abilities",
    "MarkovPerturbation": "markov",
    "Method": "method",
    "MultiplicativeNoise": "noise.multiplicative",
    "PTable": "cell_key",
    "PerturbationDesign": "perturbation.design",
    "PoissonSampling": "sampling",
    "PostRandomisation": "post_randomisation",
    "ProtectedMagnitudes": "magnitudes.method",
    "ProtectedPopulation": "population.method",
    "RandomRounding": "rounding.random",
    "RecordMethod": "method",
    "RecordSwapping": "swapping",
    "RoundingChannel": "rounding.random",
    "SemiControlledRounding": "rounding.semi_controlled",
    "SimpleSampling": "sampling",
    "SimulatedTables": "simulated",
    "SmallCountRounding": "rounding.small_counts",
    "Stage": "method",
    "StochasticPerturbation": "perturbation.spec",
    "StratifiedSampling": "sampling",
    "Suppression": "suppression.method",
    "TableSwapping": "swapping.tables",
    "Unchanged": "unchanged",
    "abilities_of": "abilities",
    "read_ptable": "cell_key",
}

__getattr__, __dir__ = offer(__name__, _PLACES)
