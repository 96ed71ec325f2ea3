"""A stand-in for NXP's eIQ Neutron SDK, for tests only: it compiles nothing and is not made by NXP."""
