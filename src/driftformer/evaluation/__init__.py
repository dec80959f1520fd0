"""From results to something people can read: statistics, tables, figures."""
