import AlamofireV4
import Foundation
import HTTPTestServer
import Testing

// The advanced usage of 4.x: errors and serializers of the user.

enum BackendError: Error {
  case network(error: Error)  // Capture any underlying Error from the URLSession API
  case dataSerialization(error: Error)
  case jsonSerialization(error: Error)
  case xmlSerialization(error: Error)
  case objectSerialization(reason: String)
}

extension DataRequest {
  fileprivate static func xmlResponseSerializer() -> DataResponseSerializer<ONOXMLDocument> {
    return DataResponseSerializer { request, response, data, error in
      // Pass through any underlying URLSession error to the .network case.
      guard error == nil else { return .failure(BackendError.network(error: error!)) }

      // Use Alamofire's existing data serializer to extract the data, passing the error as nil, as it has
      // already been handled.
      let result = Request.serializeResponseData(response: response, data: data, error: nil)

      guard case let .success(validData) = result else {
        return .failure(BackendError.dataSerialization(error: result.error! as! AFError))
      }

      do {
        let xml = try ONOXMLDocument(data: validData)
        return .success(xml)
      } catch {
        return .failure(BackendError.xmlSerialization(error: error))
      }
    }
  }

  @discardableResult
  fileprivate func responseXMLDocument(
    queue: DispatchQueue? = nil,
    completionHandler: @escaping (DataResponse<ONOXMLDocument>) -> Void
  )
    -> Self
  {
    return response(
      queue: queue,
      responseSerializer: DataRequest.xmlResponseSerializer(),
      completionHandler: completionHandler
    )
  }
}

protocol ResponseObjectSerializable {
  init?(response: HTTPURLResponse, representation: Any)
}

extension DataRequest {
  @discardableResult
  func responseObject<T: ResponseObjectSerializable>(
    queue: DispatchQueue? = nil,
    completionHandler: @escaping (DataResponse<T>) -> Void
  )
    -> Self
  {
    let responseSerializer = DataResponseSerializer<T> { request, response, data, error in
      guard error == nil else { return .failure(BackendError.network(error: error!)) }

      let jsonResponseSerializer = DataRequest.jsonResponseSerializer(options: .allowFragments)
      let result = jsonResponseSerializer.serializeResponse(request, response, data, nil)

      guard case let .success(jsonObject) = result else {
        return .failure(BackendError.jsonSerialization(error: result.error!))
      }

      guard let response = response, let responseObject = T(response: response, representation: jsonObject)
      else {
        return .failure(
          BackendError.objectSerialization(reason: "JSON could not be serialized: \(jsonObject)"))
      }

      return .success(responseObject)
    }

    return response(
      queue: queue, responseSerializer: responseSerializer, completionHandler: completionHandler)
  }
}

protocol ResponseCollectionSerializable {
  static func collection(from response: HTTPURLResponse, withRepresentation representation: Any) -> [Self]
}

extension ResponseCollectionSerializable where Self: ResponseObjectSerializable {
  static func collection(from response: HTTPURLResponse, withRepresentation representation: Any) -> [Self] {
    var collection: [Self] = []

    if let representation = representation as? [[String: Any]] {
      for itemRepresentation in representation {
        if let item = Self(response: response, representation: itemRepresentation) {
          collection.append(item)
        }
      }
    }

    return collection
  }
}

extension DataRequest {
  @discardableResult
  func responseCollection<T: ResponseCollectionSerializable>(
    queue: DispatchQueue? = nil,
    completionHandler: @escaping (DataResponse<[T]>) -> Void
  ) -> Self {
    let responseSerializer = DataResponseSerializer<[T]> { request, response, data, error in
      guard error == nil else { return .failure(BackendError.network(error: error!)) }

      let jsonSerializer = DataRequest.jsonResponseSerializer(options: .allowFragments)
      let result = jsonSerializer.serializeResponse(request, response, data, nil)

      guard case let .success(jsonObject) = result else {
        return .failure(BackendError.jsonSerialization(error: result.error!))
      }

      guard let response = response else {
        let reason = "Response collection could not be serialized due to nil response."
        return .failure(BackendError.objectSerialization(reason: reason))
      }

      return .success(T.collection(from: response, withRepresentation: jsonObject))
    }

    return response(responseSerializer: responseSerializer, completionHandler: completionHandler)
  }
}

// The document has this type twice: on its own, and with the second protocol.
private struct User: ResponseObjectSerializable, ResponseCollectionSerializable, CustomStringConvertible {
  let username: String
  let name: String

  var description: String {
    return "User: { username: \(username), name: \(name) }"
  }

  init?(response: HTTPURLResponse, representation: Any) {
    guard
      let username = response.url?.lastPathComponent,
      let representation = representation as? [String: Any],
      let name = representation["name"] as? String
    else { return nil }

    self.username = username
    self.name = name
  }
}

extension Samples {
  @Suite struct AdvancedSerializers {
    let environment: SampleEnvironment
    init() throws { environment = try SampleEnvironment.set() }

    @Test(arguments: ["xml", "get"])
    func customResponseSerializer(path: String) async {
      Alamofire.request("https://httpbin.org/\(path)").responseXMLDocument { response in
        print(response.result.value?.text.prefix(5))
        print(response.error)
      }

      let lines = await printed(2)
      if path == "xml" {
        #expect(lines == ["<?xml", "nil"])
      } else {
        #expect(lines[1].contains("xmlSerialization"))
      }
    }

    @Test func errorsAreWrapped() async {
      Alamofire.request("https://httpbin.org/status/500").validate().responseXMLDocument { response in
        guard case .failure(BackendError.network(let error)) = response.result else { return print("other") }
        print((error as? AFError)?.responseCode)
      }

      #expect(await printed() == ["500"])
    }

    @Test func genericResponseObject() async {
      Alamofire.request("https://example.com/users/mattt").responseObject { (response: DataResponse<User>) in
        debugPrint(response)

        if let user = response.result.value {
          print("User: { username: \(user.username), name: \(user.name) }")
        }
      }

      #expect(await printed(2)[1] == "User: { username: mattt, name: Mattt Thompson }")
    }

    @Test func genericResponseCollection() async {
      Alamofire.request("https://example.com/users").responseCollection { (response: DataResponse<[User]>) in
        debugPrint(response)

        if let users = response.result.value {
          users.forEach { print("- \($0)") }
        }
      }

      #expect(
        await printed(3).dropFirst() == [
          "- User: { username: users, name: Ada }", "- User: { username: users, name: Grace }",
        ])
    }
  }
}
