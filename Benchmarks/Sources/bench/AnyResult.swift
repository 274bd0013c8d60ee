/// A line of `bench.json`, of whichever kind.
struct AnyResult: Encodable {
  let result: any Encodable

  func encode(to encoder: any Encoder) throws {
    try result.encode(to: encoder)
  }
}
