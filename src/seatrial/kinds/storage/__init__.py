"""StorageClasses, PersistentVolumes and PVCs."""
