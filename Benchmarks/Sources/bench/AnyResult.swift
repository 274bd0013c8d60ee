/// A line of `bench.json` of any kind.
struct AnyResult: Encodable {
  let result: any Encodable

  func encode(to encoder: any Encoder) throws {
    try result.encode(to: encoder)
  }
}
