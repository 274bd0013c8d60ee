import HTTPWire

/// The lock of this module; see ``TrackedMutex``.
typealias Mutex = TrackedMutex
