import Alamofire
import Testing

/// Parameters of every encoding and encoder, as httpbin reads them.
@Suite(.needsHTTPBin, .timeLimit(.minutes(5))) struct ParameterTests {
  private struct Order: Codable, Equatable {
    var id = 7
    var unitPrice = 2.5
    var isPaid = true
    var tags = ["a b", "zü&=+"]
    var owner = ["name": "Zoë"]
  }

  private func echo(_ request: (HTTPBinServer) -> DataRequest) async throws -> Echo {
    try await request(try await HTTPBinServer.shared).validate().serializingDecodable(Echo.self).value
  }

  // MARK: Dictionaries

  private static var parameters: Parameters {
    ["id": 7, "paid": true, "tags": ["a b", "zü&=+"], "owner": ["name": "Zoë"]]
  }

  @Test("A dictionary is encoded in the query of a GET") func query() async throws {
    let echo = try await echo { AF.request($0.url("/get?first=1"), parameters: Self.parameters) }
    #expect(
      echo.args == ["first": "1", "id": "7", "paid": "1", "tags[]": ["a b", "zü&=+"], "owner[name]": "Zoë"])
  }

  @Test("A dictionary is encoded in the form of a POST") func form() async throws {
    let echo = try await echo { AF.request($0.url("/post"), method: .post, parameters: Self.parameters) }
    #expect(echo.form == ["id": "7", "paid": "1", "tags[]": ["a b", "zü&=+"], "owner[name]": "Zoë"])
    #expect(echo.args.isEmpty)
    #expect(echo.header("Content-Type") == "application/x-www-form-urlencoded; charset=utf-8")
  }

  @Test("The destination and options of an encoding apply") func options() async throws {
    let encoding = URLEncoding(destination: .queryString, arrayEncoding: .noBrackets, boolEncoding: .literal)
    let query = try await echo {
      AF.request($0.url("/post"), method: .post, parameters: Self.parameters, encoding: encoding)
    }
    #expect(query.args == ["id": "7", "paid": "true", "tags": ["a b", "zü&=+"], "owner[name]": "Zoë"])
    #expect(query.form == [:])
    let body = try await echo {
      AF.request(
        $0.url("/delete"), method: .delete, parameters: Self.parameters,
        encoding: URLEncoding(destination: .httpBody, arrayEncoding: .indexInBrackets))
    }
    #expect(body.form?["tags[0]"] == "a b")
    #expect(body.form?["tags[1]"] == "zü&=+")
  }

  @Test("A dictionary is encoded as JSON", arguments: [JSONEncoding.default, .prettyPrinted])
  func json(encoding: JSONEncoding) async throws {
    let echo = try await echo {
      AF.request($0.url("/put"), method: .put, parameters: Self.parameters, encoding: encoding)
    }
    #expect(
      echo.json
        == .object([
          "id": .number(7), "paid": .bool(true), "tags": .array([.string("a b"), .string("zü&=+")]),
          "owner": .object(["name": .string("Zoë")]),
        ]))
    #expect(echo.header("Content-Type") == "application/json")
    #expect(echo.data?.contains("\n") == encoding.options.contains(.prettyPrinted))
  }

  // MARK: Encodable values

  @Test("An Encodable value is encoded by the destination of its method") func encodable() async throws {
    let fields: [String: Values] = [
      "id": "7", "unitPrice": "2.5", "isPaid": "1", "tags[]": ["a b", "zü&=+"], "owner[name]": "Zoë",
    ]
    let get = try await echo { AF.request($0.url("/get"), parameters: Order()) }
    #expect(get.args == fields)
    let post = try await echo { AF.request($0.url("/post"), method: .post, parameters: Order()) }
    #expect(post.form == fields)
    #expect(post.args.isEmpty)
  }

  @Test("The options of a form encoder apply") func encoderOptions() async throws {
    let encoder = URLEncodedFormParameterEncoder(
      encoder: URLEncodedFormEncoder(
        arrayEncoding: .indexInBrackets, boolEncoding: .literal, keyEncoding: .convertToSnakeCase,
        keyPathEncoding: .dots, spaceEncoding: .plusReplaced), destination: .httpBody)
    let echo = try await echo {
      AF.request($0.url("/patch"), method: .patch, parameters: Order(), encoder: encoder)
    }
    #expect(
      echo.form == [
        "id": "7", "unit_price": "2.5", "is_paid": "true", "tags[0]": "a b", "tags[1]": "zü&=+",
        "owner.name": "Zoë",
      ])
  }

  @Test("A form encoder can encode in the query of a POST") func queryOfPost() async throws {
    let encoder = URLEncodedFormParameterEncoder(
      encoder: URLEncodedFormEncoder(arrayEncoding: .noBrackets), destination: .queryString)
    let echo = try await echo {
      AF.request($0.url("/post"), method: .post, parameters: Order(), encoder: encoder)
    }
    #expect(echo.args["tags"] == ["a b", "zü&=+"])
    #expect(echo.data == "")
  }

  @Test(
    "An Encodable value is encoded as JSON",
    arguments: [JSONParameterEncoder.default, .prettyPrinted, .sortedKeys])
  func encodableJSON(encoder: JSONParameterEncoder) async throws {
    let echo = try await echo {
      AF.request($0.url("/post"), method: .post, parameters: Order(), encoder: encoder)
    }
    let body = try #require(echo.data)
    #expect(try JSONDecoder().decode(Order.self, from: Data(body.utf8)) == Order())
    #expect(echo.json != nil)
    #expect(echo.header("Content-Type") == "application/json")
    #expect(body.contains("\n") == encoder.encoder.outputFormatting.contains(.prettyPrinted))
  }
}
