// The functions of libvips that AlamofireImage needs. The library is loaded when it is first used, with dlopen, as its
// bindings for Python, Ruby and .NET do. So a program is built without libvips, and only needs it when it runs.
//
// All functions are safe to call from any thread. None but cvips_load() and cvips_free() may be called before cvips_load() returned NULL.
// A function that fails returns -1, 0 or NULL; cvips_take_error() says why.
#ifndef CVIPS_H
#define CVIPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// An image of libvips: a description of pixels that are computed when they are needed.
typedef struct _VipsImage *VipsImageReference;

// Loads the library and prepares it. Returns NULL, or the reason why the library cannot be used, which stays valid.
const char *cvips_load(void);

// The version of the library: 8, 14 and 1 for the parts 0, 1 and 2.
int cvips_version_part(int part);

// Takes the text of the last errors of all threads. Free it with cvips_free().
char *cvips_take_error(void);

void cvips_free(void *memory);
void cvips_release(VipsImageReference image);

// Frees what the library stores for the calling thread.
void cvips_end_of_work(void);

// Bytes that the library has allocated for pixels, now and at most.
size_t cvips_memory(void);
size_t cvips_most_memory(void);
// How many threads compute one image, and how many operations are cached.
int cvips_threads(void);
int cvips_cached_operations(void);

// Whether there is an operation of this name, such as "heifsave_buffer".
bool cvips_has_operation(const char *name);

// The name of the loader for the bytes, such as "VipsForeignLoadJpegBuffer", or NULL.
const char *cvips_loader(const void *bytes, size_t count);

// What an image is, read from its head.
struct cvips_facts {
  int width;
  int height;        // of all frames together
  int page_height;   // of one frame
  int pages;         // in the file, which may be more than were loaded
  int bands;
  int pixel_bytes;   // of all samples of a pixel, as the file is decoded
  int orientation;   // 1 to 8, as in EXIF
  bool has_alpha;
};

// Reads the head of an image. What is computed from it fails if the file is truncated. The bytes must stay valid until
// all images that were made from it are released.
VipsImageReference cvips_open(const void *bytes, size_t count, const char *options);

enum cvips_file_format { cvips_jpeg, cvips_png, cvips_webp, cvips_avif, cvips_heic, cvips_gif, cvips_tiff };

// Reads the head of a JPEG or PNG file, whose rows are read when they are needed: decoding takes no memory for its bytes.
// Each image of a descriptor must be released before the next is opened. JPEG files can be shrunk by 1, 2, 4 or 8.
VipsImageReference cvips_open_file(int file, enum cvips_file_format format, int shrink);

// Whether the rows of an opened JPEG or PNG file come several times, each time with more details.
bool cvips_is_interlaced(VipsImageReference image);

// Lets everything fail that is computed from an image, now and later. It may be computed on another thread.
void cvips_kill(VipsImageReference image);

void cvips_read_facts(VipsImageReference image, struct cvips_facts *facts);

// Copies up to `capacity` durations of frames, in milliseconds, and returns how many there are.
int cvips_delays(VipsImageReference image, int *delays, int capacity);
// How often an animation is repeated; 0 means without end.
int cvips_loop(VipsImageReference image);

// Applies the orientation, converts to sRGB and scales to exactly this size; 0 by 0 keeps the size. The
// height is the height of one frame.
// Animations are not turned. A colour profile that is not used is ignored and removed.
VipsImageReference cvips_scaled(VipsImageReference image, int width, int height, bool uses_profile);

// The colour profile in the file, or NULL. It stays valid as long as the image.
const void *cvips_profile(VipsImageReference image, size_t *count);

// An image of 8 bits per sample, with 3 or 4 bands, in sRGB.
VipsImageReference cvips_plain(VipsImageReference image);
// Blurs, with transparent pixels counting by their opacity.
VipsImageReference cvips_blurred(VipsImageReference image, double sigma);

// An image of pixels in memory, which must stay valid until the image is released.
VipsImageReference cvips_wrap(
    const void *pixels, size_t count, int width, int height, int bands, int page_height, const int *delays,
    int delay_count, int loop);

// What a thread computes pixels with. Only the thread that made it may use it.
typedef struct _VipsRegion *VipsRegionReference;
VipsRegionReference cvips_region(VipsImageReference image);
void cvips_release_region(VipsRegionReference region);

// Computes rows of pixels, on the calling thread. Free them with cvips_free(). The rows must be asked for from top to
// bottom.
void *cvips_compute(VipsRegionReference region, int width, int top, int rows, size_t *count);

// Encodes without metadata. `quality` is 1 to 100.
void *cvips_encode(
    VipsImageReference image, enum cvips_file_format format, int quality, bool lossless, size_t *count);

#endif
