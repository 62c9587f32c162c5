//! Index map algebra: the clever, untrusted half. Simplification, bounds, physical shapes, inverses.
