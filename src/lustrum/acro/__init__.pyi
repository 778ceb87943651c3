from .acro import ACRO as ACRO
