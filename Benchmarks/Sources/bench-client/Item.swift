/// The document that is sent.
struct Order: Encodable, Sendable {
  var id: Int
  var name: String
  var amount: Int
  var tags: [String]
}

/// The document in the responses of the server.
struct Item: Decodable, Sendable {
  struct Owner: Decodable, Sendable {
    var id: Int
    var email: String
  }

  var id: Int
  var name: String
  var price: Double
  var tags: [String]
  var active: Bool
  var owner: Owner
  var created: String
  var notes: String
}
