"""NXP's converter for the eIQ Neutron NPUs, which the user has: as a program, or as a Python module.

What is known of its options, its log and its files comes from public pages; the converter itself may not be passed on,
so all here is tested with a stand-in that replays published logs.
"""
