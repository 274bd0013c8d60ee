/// What is known about the library itself.
public enum AFInfo {
  /// The version of this library (Semantic Versioning), which is not that of upstream Alamofire.
  public static let version = "0.1.0"
}
