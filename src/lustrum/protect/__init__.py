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
suppression                    :class:`Suppression`
no protection                  :class:`Unchanged`
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
    "abilities": "Abilities KeysEmptyCells abilities_of",
    "adjustment.method": "ControlledAdjustment",
    "cell_key": "CellKey CellKeyMagnitude PTable read_ptable",
    "magnitudes.method": "ProtectedMagnitudes",
    "markov": "MarkovPerturbation",
    "method": "Method RecordMethod Stage",
    "noise.additive": "AdditiveNoise",
    "noise.multiplicative": "MultiplicativeNoise",
    "perturbation.design": "PerturbationDesign",
    "perturbation.spec": "StochasticPerturbation",
    "population.method": "ProtectedPopulation",
    "post_randomisation": "PostRandomisation",
    "privacy": "DifferentialPrivacy",
    "rounding.controlled.method": "ControlledRounding",
    "rounding.conventional": "ConventionalRounding",
    "rounding.random": "RandomRounding RoundingChannel",
    "rounding.semi_controlled": "SemiControlledRounding",
    "rounding.small_counts": "SmallCountRounding",
    "sampling": "PoissonSampling SimpleSampling StratifiedSampling",
    "simulated": "SimulatedTables",
    "suppression.method": "Suppression",
    "swapping": "RecordSwapping",
    "swapping.tables": "TableSwapping",
    "unchanged": "Unchanged",
}

__getattr__, __dir__ = offer(__name__, _PLACES)
