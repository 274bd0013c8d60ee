import Alamofire

#if IMPORTS_FOUNDATION
  import Foundation
#endif
#if IMPORTS_FOUNDATION_NETWORKING
  import FoundationNetworking
#endif

// Code from before values had to be `Sendable`: `Any`, dictionaries of it, and classes with variables as values. It
// compiles without warnings in the Swift 5 mode. In the Swift 6 mode upstream refuses it too.
#if swift(<6)
  private let url = "http://localhost"

  private class Model {
    var text = ""
  }

  private struct AnySerializer: ResponseSerializer {
    func serialize(request: URLRequest?, response: HTTPURLResponse?, data: Data?, error: Error?) throws -> Any
    {
      if let error = error { throw error }
      return try JSONSerialization.jsonObject(with: data ?? Data())
    }
  }

  private struct DictionarySerializer: DataResponseSerializerProtocol {
    func serialize(
      request: URLRequest?, response: HTTPURLResponse?, data: Data?, error: Error?
    ) throws -> [String: Any] { [:] }
  }

  private struct ModelSerializer: DownloadResponseSerializerProtocol {
    func serializeDownload(
      request: URLRequest?, response: HTTPURLResponse?, fileURL: URL?, error: Error?
    ) throws -> Model { Model() }
  }

  private func handlers() {
    AF.request(url).response(responseSerializer: AnySerializer()) { (response: AFDataResponse<Any>) in
      print(response.value as? [String: Any] ?? [:])
    }
    AF.request(url).response(responseSerializer: DictionarySerializer()) { response in
      show(response)
    }
    AF.download(url).response(responseSerializer: ModelSerializer()) { response in
      print(response.value?.text ?? "")
    }
  }

  @available(*, deprecated) private func untyped(
    _ completion: @escaping (AFDataResponse<Any>) -> Void, _ results: @escaping (Result<Any, AFError>) -> Void
  ) throws {
    AF.request(url).responseJSON { response in
      print(response)
      completion(response)
      results(response.result)
    }
    AF.request(url).responseJSON(completionHandler: completion)
    AF.request(url).responseJSON(queue: .global()) { (response: DataResponse<Any, AFError>) in
      switch response.result {
      case .success(let value as [String: Any]): print(value)
      case .success(let value): print(value)
      case .failure(let error): print(error)
      }
    }
    AF.upload(Data(), to: url).responseJSON { print($0.value as? [Any] ?? []) }
    AF.download(url).responseJSON { (response: AFDownloadResponse<Any>) in print(response.value as Any) }
    let json: Any = try JSONResponseSerializer().serialize(request: nil, response: nil, data: nil, error: nil)
    print(json)
  }

  private func show(_ response: AFDataResponse<[String: Any]>) {
    let first = response.map { $0.first?.value as Any }
    print(first.value as Any, response.tryMap { $0 as Any }.value as Any)
  }

  private func made() -> DataResponse<Any, AFError> {
    DataResponse<Any, AFError>(
      request: nil, response: nil, data: nil, metrics: nil, serializationDuration: 0, result: .success(1))
  }

  private struct Wrapper<Value> {
    var response: AFDataResponse<Value>?
    var completion: ((AFDataResponse<Value>) -> Void)?
  }

  private func wrapped() -> Wrapper<Any> { Wrapper(response: made(), completion: nil) }

  private func tasks(_ request: DataRequest) async throws {
    let value = try await request.serializingResponse(using: AnySerializer()).value
    let response = await request.serializingResponse(using: DictionarySerializer()).response
    print(value, response.value?.count ?? 0)
  }

  private final class Logger: EventMonitor {
    func request<Value>(_ request: DataRequest, didParseResponse response: DataResponse<Value, AFError>) {
      print(response.value as Any)
    }
  }
#endif
