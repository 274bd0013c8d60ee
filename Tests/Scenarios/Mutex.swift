// Exported, so that the files that lock see its members without an import of their own.
@_exported import struct HTTPWire.TrackedMutex

/// The lock of this module; see ``TrackedMutex``.
typealias Mutex = TrackedMutex
