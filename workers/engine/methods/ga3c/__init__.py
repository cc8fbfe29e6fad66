"""GA3C (Babaeizadeh et al. 2017); see `workers.engine.methods.ga3c.ga3c`."""
