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
records                        :class:`ProtectedPopulation`, :class:`ProvenPopulation`,
                               :class:`ProtectedMagnitudes`, :class:`ProvenSums`,
                               :class:`RecordSwapping`, :class:`PostRandomisation`,
                               :class:`SimpleSampling`, :class:`PoissonSampling`,
                               :class:`StratifiedSampling`
suppression                    :class:`Suppression`
no protection                  :class:`Unchanged`
=============================  ============================================================================

A policy names methods and parameters as Python does. Each method declares its abilities
(:class:`Abilities`).
:mod:`~lustrum.protect.additive.restore` fits a perturbed table to its margins again.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
