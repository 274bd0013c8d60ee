// Exported, so that the files that lock see its members without importing its module.
@_exported import struct HTTPWire.TrackedMutex

/// The lock of this module; see ``TrackedMutex``.
typealias Mutex = TrackedMutex
