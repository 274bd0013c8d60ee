import Foundation

/// The decoder of handlers and tasks that are given none: one for all, since making one costs as much as
/// decoding a small document, and nobody can change it.
@usableFromInline
let defaultJSONDecoder = JSONDecoder()
