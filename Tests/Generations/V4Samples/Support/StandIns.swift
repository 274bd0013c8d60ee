import Foundation

// Small stand-ins for types of other platforms and libraries that the samples use.

/// An image: something that begins as PNG does.
final class UIImage: Sendable {
  let data: Data

  init?(data: Data) {
    guard data.starts(with: [0x89, 0x50, 0x4E, 0x47]) else { return nil }
    self.data = data
  }

  convenience init?(contentsOfFile path: String) {
    guard let data = FileManager.default.contents(atPath: path) else { return nil }
    self.init(data: data)
  }
}

func UIPNGRepresentation(_ image: UIImage) -> Data? { image.data }

/// The smallest PNG that serves.
let image = UIImage(data: Data([0x89, 0x50, 0x4E, 0x47, 0x0D, 0x0A, 0x1A, 0x0A]))!

/// A document of XML, as far as the samples care.
struct ONOXMLDocument {
  let text: String

  init(data: Data) throws {
    let text = String(decoding: data, as: UTF8.self)
    guard text.hasPrefix("<") else { throw CocoaError(.propertyListReadCorrupt) }
    self.text = text
  }
}
