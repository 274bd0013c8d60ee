import Foundation

/// The functions of `Counts/counts.c` that begin and end counting, if it is preloaded.
struct CountingMarks {
  private typealias Reset = @convention(c) () -> Void
  private typealias Read = @convention(c) (UnsafeMutablePointer<CChar>, Int) -> Void
  private let resetCounts: Reset
  private let readCounts: Read

  /// Returns `nil` if the library is not preloaded.
  init?() {
    guard let reset = dlsym(nil, "counts_reset"), let read = dlsym(nil, "counts_read") else { return nil }
    resetCounts = unsafeBitCast(reset, to: Reset.self)
    readCounts = unsafeBitCast(read, to: Read.self)
  }

  func reset() { resetCounts() }

  /// Returns the counts since ``reset()`` by name.
  func read() -> [String: Int] {
    var text = [CChar](repeating: 0, count: 1024)
    readCounts(&text, text.count)
    let end = text.firstIndex(of: 0) ?? text.count
    let json = Data(text[..<end].map { UInt8(bitPattern: $0) })
    return (try? JSONDecoder().decode([String: Int].self, from: json)) ?? [:]
  }
}
