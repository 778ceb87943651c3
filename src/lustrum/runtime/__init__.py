"""What every room needs to run: whole files, the data folder, stopping, progress, work side by side, logs."""
