#!/bin/sh
# dmidecode -s: the kernel has read the same tables.
case $2 in
system-manufacturer) name=sys_vendor ;;
system-product-name) name=product_name ;;
*) name=$(echo "${2#system-}" | sed 's/^\(serial-number\|version\|uuid\|family\|sku-number\)$/product_\1/;s/-number$//;s/-/_/g') ;;
esac
cat "/sys/class/dmi/id/$name"
