"""NXP's eIQ Neutron NPUs: which nodes the converter puts on them, as far as that is public.

Neutron-C (``c``, and ``old`` for converters before SDK 3.2) is described by the vendor's code in ExecuTorch. Little
is public about Neutron-S (``s``): what is carried over from Neutron-C is marked as inferred, and where nobody says
anything the verdict is that it is unknown.
"""

from vitrify.targets.neutron.cautions import cautions
from vitrify.targets.neutron.operators import basis, operators, row, variant
from vitrify.targets.neutron.settling import alone, settle

__all__ = ["alone", "basis", "cautions", "operators", "row", "settle", "variant"]
