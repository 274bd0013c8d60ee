/// The limits that a server announces for an upload (`Upload-Limit` of the IETF's draft, `Tus-Max-Size` of tus).
package struct UploadLimits: Sendable, Equatable {
  /// The largest upload in bytes.
  package var maximumSize: Int64?
  package var minimumSize: Int64?
  /// The largest content of one request in bytes.
  package var maximumAppendSize: Int64?
  /// The smallest content of a request that does not end the upload.
  package var minimumAppendSize: Int64?

  package init() {}

  /// Reads a field `Upload-Limit`. Unknown members are ignored. `nil` if the field is no dictionary, or if a known
  /// member is no integer that is zero or more.
  package init?(_ field: String) {
    guard let members = StructuredField.dictionary(field) else { return nil }
    for (key, member) in members {
      guard let target = Self.member(key) else { continue }
      guard case .integer(let value) = member, value >= 0 else { return nil }
      self[keyPath: target] = value
    }
  }

  private static func member(_ key: String) -> WritableKeyPath<UploadLimits, Int64?>? {
    switch key {
    case "max-size": \.maximumSize
    case "min-size": \.minimumSize
    case "max-append-size": \.maximumAppendSize
    case "min-append-size": \.minimumAppendSize
    default: nil
    }
  }

  /// Takes over the limits that another response names.
  package mutating func update(with newer: UploadLimits) {
    maximumSize = newer.maximumSize ?? maximumSize
    minimumSize = newer.minimumSize ?? minimumSize
    maximumAppendSize = newer.maximumAppendSize ?? maximumAppendSize
    minimumAppendSize = newer.minimumAppendSize ?? minimumAppendSize
  }
}
