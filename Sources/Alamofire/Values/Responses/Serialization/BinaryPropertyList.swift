/// A property list in the binary format, which is measured before it is parsed.
///
/// The format numbers all objects, and arrays and dictionaries contain these numbers. Foundation's parsers copy an
/// object each time that its number appears, so that 200 bytes can stand for a value that exceeds all memory. A set, an
/// object that contains itself, and a count that is too large can end the process.
///
/// The older generations have the file through a link, because they use only the public API of this module.
struct BinaryPropertyList {
  /// The reason for which a document is not parsed.
  enum Refusal: Error, Equatable {
    /// An object or the table of objects is not as the format requires, or an object contains itself.
    case damaged
    /// The document contains a set.
    case containsSet
    /// More than ``BinaryPropertyList/deepest`` arrays and dictionaries are nested.
    case tooDeep
    /// The value would take more bytes than the limit.
    case tooLarge(limit: Int)
  }

  /// The number of arrays and dictionaries that may be nested, as in a property list in XML.
  static let deepest = 512

  private static let headSize = 8
  private static let trailerSize = 32
  /// The bytes of an element of a Swift array of values of any type.
  private static let scalarSize = 32
  /// The bytes of such an element that is an array or a dictionary.
  private static let containerSize = 96

  private let bytes: UnsafeRawBufferPointer
  private let limit: Int
  private let offsetSize: Int
  private let referenceSize: Int
  /// The position of the table that has the position of each object. All objects are before it.
  private let table: Int
  private let root: Int
  /// The bytes of the value of each object: 0 until they are known, and −1 while they are computed.
  private var sizes: [Int]
  /// The number of arrays and dictionaries that are nested in each measured object, including the object.
  private var heights: [UInt16]
  /// The number of elements of the arrays and dictionaries that were measured.
  private(set) var elementCount = 0

  /// Reads the trailer of a document.
  ///
  /// - Parameters:
  ///   - bytes: The document, which has to stay valid as long as the value is used.
  ///   - limit: The number of bytes that the value of the document may take.
  init(_ bytes: UnsafeRawBufferPointer, limit: Int) throws(Refusal) {
    let trailer = bytes.count - Self.trailerSize
    guard trailer > Self.headSize else { throw .damaged }
    (offsetSize, referenceSize) = (Int(bytes[trailer + 6]), Int(bytes[trailer + 7]))
    // Parsers could disagree about longer numbers, and no writer needs them.
    guard 1...8 ~= offsetSize, 1...8 ~= referenceSize else { throw .damaged }
    let count = try Self.integer(bytes, at: trailer + 8, size: 8)
    root = try Self.integer(bytes, at: trailer + 16, size: 8)
    table = try Self.integer(bytes, at: trailer + 24, size: 8)
    guard table > Self.headSize, table < trailer, count <= (trailer - table) / offsetSize else {
      throw .damaged
    }
    self.bytes = bytes
    self.limit = limit
    sizes = Array(repeating: 0, count: count)
    heights = Array(repeating: 0, count: count)
  }

  /// Whether Foundation's parsers take bytes for a property list in this format.
  static func isBinary(_ document: some Sequence<UInt8>) -> Bool { document.starts(with: "bplist0".utf8) }

  /// Returns the reason for which a document must not be parsed; `nil` if it may be parsed, and for every other format.
  static func refusal(of document: UnsafeRawBufferPointer) -> Refusal? {
    guard isBinary(document) else { return nil }
    do throws(Refusal) {
      var list = try BinaryPropertyList(document, limit: limit(byteCount: document.count))
      _ = try list.size()
      return nil
    } catch {
      return error
    }
  }

  /// Returns the number of bytes that the value of a document of this length may take. Writers of property lists repeat
  /// numbers and texts, which takes less.
  static func limit(byteCount: Int) -> Int { max(67_108_864, 128 * byteCount) }

  /// Estimates the number of bytes that the value of the document takes.
  ///
  /// Each object is measured once. All elements of all objects are in the value, so that their number is limited, too.
  mutating func size() throws(Refusal) -> Int { try size(of: root, depth: 0) }

  private mutating func size(of object: Int, depth: Int) throws(Refusal) -> Int {
    guard object < sizes.count else { throw .damaged }
    let known = sizes[object]
    if known > 0 {
      // Parsers enter an object at each place where its number appears.
      guard depth + Int(heights[object]) <= Self.deepest else { throw .tooDeep }
      return known
    }
    // The object contains itself.
    guard known == 0 else { throw .damaged }
    sizes[object] = -1
    let size = try measure(object, depth: depth)
    sizes[object] = size
    return size
  }

  private mutating func measure(_ object: Int, depth: Int) throws(Refusal) -> Int {
    let start = try Self.integer(bytes, at: table + object * offsetSize, size: offsetSize)
    guard start >= Self.headSize, start < table else { throw .damaged }
    switch bytes[start] >> 4 {
    // Data, and text in ASCII.
    case 0x4, 0x5: return Self.scalarSize + (try elements(at: start, size: 1).count)
    // Text in UTF-16, which becomes UTF-8.
    case 0x6: return Self.scalarSize + 3 * (try elements(at: start, size: 2).count)
    case 0xA:
      let elements = try elements(at: start, size: referenceSize)
      return try containerSize(of: object, elements.count, at: elements.begin, depth: depth)
    case 0xB, 0xC: throw .containsSet
    // The keys, then the values.
    case 0xD:
      let pairs = try elements(at: start, size: 2 * referenceSize)
      return try containerSize(of: object, 2 * pairs.count, at: pairs.begin, depth: depth)
    default: return Self.scalarSize
    }
  }

  private mutating func containerSize(
    of container: Int, _ count: Int, at begin: Int, depth: Int
  ) throws(Refusal) -> Int {
    guard depth < Self.deepest else { throw .tooDeep }
    elementCount += count
    guard elementCount <= limit / Self.scalarSize else { throw .tooLarge(limit: limit) }
    var size = Self.containerSize
    var height: UInt16 = 0
    for index in 0..<count {
      let object = try Self.integer(bytes, at: begin + index * referenceSize, size: referenceSize)
      size += try self.size(of: object, depth: depth + 1)
      guard size <= limit else { throw .tooLarge(limit: limit) }
      height = max(height, heights[object])
    }
    // At most as large as the limit, because the elements were measured at a depth of their own.
    heights[container] = height + 1
    return size
  }

  /// Reads the number of elements of an object, and where they begin. All of them are before the table.
  private func elements(at start: Int, size: Int) throws(Refusal) -> (count: Int, begin: Int) {
    var count = Int(bytes[start] & 0xF)
    var begin = start + 1
    // The count is a number of its own, with 1, 2, 4 or 8 bytes.
    if count == 0xF {
      guard begin < table, 0x10...0x13 ~= bytes[begin] else { throw .damaged }
      let length = 1 << Int(bytes[begin] & 0xF)
      guard length <= table - begin - 1 else { throw .damaged }
      count = try Self.integer(bytes, at: begin + 1, size: length)
      begin += 1 + length
    }
    guard count <= (table - begin) / size else { throw .damaged }
    return (count, begin)
  }

  private static func integer(
    _ bytes: UnsafeRawBufferPointer, at place: Int, size: Int
  ) throws(Refusal) -> Int {
    var value: UInt64 = 0
    for index in place..<place + size { value = value << 8 | UInt64(bytes[index]) }
    guard let result = Int(exactly: value) else { throw .damaged }
    return result
  }
}

extension BinaryPropertyList.Refusal: CustomStringConvertible {
  var description: String {
    switch self {
    case .damaged: "The binary property list is damaged."
    case .containsSet: "The binary property list contains a set, which no property list may contain."
    case .tooDeep:
      "The arrays and dictionaries of the binary property list are nested too deeply; at most "
        + "\(BinaryPropertyList.deepest) may be open at a time."
    case .tooLarge(let limit):
      "The value of the binary property list would take more than \(limit) bytes, because its objects are repeated."
    }
  }
}
