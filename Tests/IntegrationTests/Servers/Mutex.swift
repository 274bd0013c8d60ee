// Exported, so that files that lock see its members without another import.
@_exported import struct HTTPWire.TrackedMutex

/// The lock of this module; see ``TrackedMutex``.
typealias Mutex = TrackedMutex
