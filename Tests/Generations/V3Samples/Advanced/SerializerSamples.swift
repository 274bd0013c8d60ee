import AlamofireV3
import HTTPTestServer
import Testing

/// A stand-in for the XML document of Ono, a library for other platforms.
public final class ONOXMLDocument {
  let text: String

  init(data: Data) throws {
    text = String(decoding: data, as: UTF8.self)
    guard text.hasPrefix("<") else { throw CocoaError(.fileReadCorruptFile) }
  }
}

// Creating a Custom Response Serializer
extension Request {
  /// Returns a serializer for XML.
  public static func XMLResponseSerializer() -> ResponseSerializer<ONOXMLDocument, NSError> {
    return ResponseSerializer { request, response, data, error in
      guard error == nil else { return .Failure(error!) }

      guard let validData = data else {
        let failureReason = "Data could not be serialized. Input data was nil."
        let error = Alamofire.Error.errorWithCode(.DataSerializationFailed, failureReason: failureReason)
        return .Failure(error)
      }

      do {
        let XML = try ONOXMLDocument(data: validData)
        return .Success(XML)
      } catch {
        return .Failure(error as NSError)
      }
    }
  }

  /// Adds a handler with this serializer.
  @discardableResult
  public func responseXMLDocument(
    _ completionHandler: @escaping (Response<ONOXMLDocument, NSError>) -> Void
  ) -> Self {
    return response(
      responseSerializer: Request.XMLResponseSerializer(), completionHandler: completionHandler)
  }
}

/// Generic Response Object Serialization:
/// A type that is initialized with a response.
public protocol ResponseObjectSerializable {
  init?(response: HTTPURLResponse, representation: Any)
}

extension Request {
  /// Adds a handler with a serializer of this type.
  @discardableResult
  public func responseObject<T: ResponseObjectSerializable>(
    _ completionHandler: @escaping (Response<T, NSError>) -> Void
  ) -> Self {
    let responseSerializer = ResponseSerializer<T, NSError> { request, response, data, error in
      guard error == nil else { return .Failure(error!) }

      let JSONResponseSerializer = Request.JSONResponseSerializer(options: .allowFragments)
      let result = JSONResponseSerializer.serializeResponse(request, response, data, error)

      switch result {
      case .Success(let value):
        if let response = response,
          let responseObject = T(response: response, representation: value)
        {
          return .Success(responseObject)
        } else {
          let failureReason = "JSON could not be serialized into response object: \(value)"
          let error = Alamofire.Error.errorWithCode(
            .JSONSerializationFailed, failureReason: failureReason)
          return .Failure(error)
        }
      case .Failure(let error):
        return .Failure(error)
      }
    }

    return response(responseSerializer: responseSerializer, completionHandler: completionHandler)
  }
}

/// A type that a response can yield a collection of.
public protocol ResponseCollectionSerializable {
  static func collection(response: HTTPURLResponse, representation: Any) -> [Self]
}

extension Alamofire.Request {
  /// Adds a handler with a serializer of collections.
  @discardableResult
  public func responseCollection<T: ResponseCollectionSerializable>(
    _ completionHandler: @escaping (Response<[T], NSError>) -> Void
  ) -> Self {
    let responseSerializer = ResponseSerializer<[T], NSError> { request, response, data, error in
      guard error == nil else { return .Failure(error!) }

      let JSONSerializer = Request.JSONResponseSerializer(options: .allowFragments)
      let result = JSONSerializer.serializeResponse(request, response, data, error)

      switch result {
      case .Success(let value):
        if let response = response {
          return .Success(T.collection(response: response, representation: value))
        } else {
          let failureReason = "Response collection could not be serialized due to nil response"
          let error = Alamofire.Error.errorWithCode(
            .JSONSerializationFailed, failureReason: failureReason)
          return .Failure(error)
        }
      case .Failure(let error):
        return .Failure(error)
      }
    }

    return response(responseSerializer: responseSerializer, completionHandler: completionHandler)
  }
}

// The document has this class twice. The second one adds the collection.
final class User: ResponseObjectSerializable, ResponseCollectionSerializable {
  let username: String
  let name: String

  init?(response: HTTPURLResponse, representation: Any) {
    self.username = response.url!.lastPathComponent
    self.name = (representation as! [String: Any])["name"] as! String
  }

  static func collection(response: HTTPURLResponse, representation: Any) -> [User] {
    var users: [User] = []

    if let representation = representation as? [[String: Any]] {
      for userRepresentation in representation {
        if let user = User(response: response, representation: userRepresentation) {
          users.append(user)
        }
      }
    }

    return users
  }

  // Not in the document, which later makes a user only from a name.
  init(username: String) {
    self.username = username
    self.name = username
  }
}

// URLStringConvertible
extension User: URLStringConvertible {
  static let baseURLString = "http://example.com"

  var URLString: String {
    return User.baseURLString + "/users/\(username)/"
  }
}

extension Samples {
  @Suite struct Serializers {
    let site: Site

    init() throws { site = try Site() }

    @Test func sample37_customSerializer() async {
      let result: Result<ONOXMLDocument, NSError> = await waiting { done in
        Alamofire.request(.GET, "https://example.com/document")
          .responseXMLDocument { response in done(response.result) }
      }
      #expect(result.value?.text == "<a>1</a>")
      let other: Result<ONOXMLDocument, NSError> = await waiting { done in
        Alamofire.request(.GET, "https://httpbin.org/get")
          .responseXMLDocument { response in done(response.result) }
      }
      #expect(other.error?.domain == NSCocoaErrorDomain)
    }

    @Test func sample38_responseObject() async {
      let user: User? = await waiting { done in
        Alamofire.request(.GET, "https://example.com/users/mattt")
          .responseObject { (response: Response<User, NSError>) in
            debugPrint(response)
            done(response.result.value)
          }
      }

      #expect(user?.username == "mattt")
      #expect(user?.name == "Mattt Thompson")
    }

    @Test func sample39_responseCollection() async {
      let users: [User]? = await waiting { done in
        Alamofire.request(.GET, "http://example.com/users")
          .responseCollection { (response: Response<[User], NSError>) in
            debugPrint(response)
            done(response.result.value)
          }
      }

      #expect(users?.map(\.name) == ["Mattt Thompson", "Ada Lovelace"])
    }
  }
}
