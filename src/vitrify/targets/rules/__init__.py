"""What the families of chips have in common: rules, and the judging of a graph by them."""

from vitrify.targets.rules.judging import cautions, judge, known, reasons
from vitrify.targets.rules.placing import estimated, place, placed_as
from vitrify.targets.rules.rule import Breach, Rule, Value, Variant, rule, rules_of

__all__ = ["Breach", "Rule", "Value", "Variant", "cautions", "estimated", "judge", "known", "place", "placed_as",
           "reasons", "rule", "rules_of"]
